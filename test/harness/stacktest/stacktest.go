// SPDX-License-Identifier: Apache-2.0

// Package stacktest runs stacks in tests, as net/http/httptest does with servers.
package stacktest

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/test/harness/rights"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// logLines is how many of the last lines of each log a failed test shows.
const logLines = 40

// Context returns one that ends with the test, or when an interrupt asks for it: that ends the waits and not the
// process, so that a stack is stopped gracefully.
func Context(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop)
	return ctx
}

// AddUsage adds the requests of a stack's operator to the usage of its rights, and fails the test for each that was denied.
func AddUsage(t *testing.T, s *stack.Stack, usage *rights.Usage) {
	t.Helper()
	denied := len(usage.Denied)
	if err := s.AddUsage(usage); err != nil {
		t.Errorf("reading the audit logs: %v", err)
	}
	for i := range usage.Denied[denied:] {
		t.Errorf("a request of the operator was denied: %s", &usage.Denied[denied+i])
	}
}

// Up starts a stack in a folder of the test. When the test ends, checks run, then a failed test shows the end of each
// log, and the stack is stopped. The test fails if the stack does not start or stop.
func Up(ctx context.Context, t *testing.T, opts stack.Options, checks ...func(*testing.T, *stack.Stack)) *stack.Stack {
	t.Helper()
	opts.Dir, opts.Progress = t.TempDir(), t.Output()
	s, err := stack.Up(ctx, opts)
	if err != nil {
		t.Fatalf("the stack does not start: %v", err)
	}
	t.Cleanup(func() {
		for _, check := range checks {
			check(t, s)
		}
		if t.Failed() {
			for _, c := range s.Components() {
				t.Logf("the end of %s:\n%s", c.LogFile, c.LogTail(logLines))
			}
		}
		// The context of the test has ended by now.
		if err := s.Down(context.Background()); err != nil {
			t.Errorf("the stack does not stop: %v", err)
		}
	})
	return s
}
