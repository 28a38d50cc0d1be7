// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// Signals that an operator can get.
const (
	freeze = syscall.SIGSTOP
	wake   = syscall.SIGCONT
	kill   = syscall.SIGKILL
)

// replica is one of several operators on a stack without one. It takes part in leader election.
type replica struct {
	process *os.Process
	// ended receives the error with which the process ended.
	ended chan error
}

// newReplica starts an operator, which is killed when the test ends.
func newReplica(ctx context.Context, t *testing.T, s *stack.Stack, name string) *replica {
	t.Helper()
	// Without ports, nothing is served.
	return runOperator(ctx, t, s, name, nil, "--disable-leader-election=false", "--leader-election-namespace=default", "--health-probe-port=0", "--metrics-port=0")
}

// runOperator starts an operator with more variables and arguments, which is killed when the test ends.
func runOperator(ctx context.Context, t *testing.T, s *stack.Stack, name string, variables []string, arguments ...string) *replica {
	t.Helper()
	g := NewWithT(t)
	log, err := os.Create(filepath.Join(s.LogDir(), name+".log"))
	g.Expect(err).NotTo(HaveOccurred())
	env, command := s.OperatorCommand()
	// The last of several values of a flag or variable counts.
	command, env = append(command, arguments...), append(env, variables...)
	operator := exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...)
	operator.Env, operator.Stdout, operator.Stderr = append(os.Environ(), env...), log, log
	g.Expect(operator.Start()).To(Succeed())
	r := &replica{process: operator.Process, ended: make(chan error, 1)}
	gone := make(chan struct{})
	go func() {
		r.ended <- operator.Wait()
		close(gone)
	}()
	t.Cleanup(func() {
		_ = r.process.Kill() // It can have ended.
		<-gone
		_ = log.Close()
		if t.Failed() {
			t.Logf("the end of %s:\n%s", name, (&stack.Component{LogFile: log.Name()}).LogTail(40))
		}
	})
	return r
}

// signal sends a signal to the operator.
func (r *replica) signal(g *WithT, signal os.Signal) {
	g.Expect(r.process.Signal(signal)).To(Succeed())
}

// newRecorder checks the history of the stack's objects from its beginning on, until the test ends.
func newRecorder(ctx context.Context, t *testing.T, s *stack.Stack) *history.Recorder {
	t.Helper()
	g := NewWithT(t)
	etcd, err := s.Component(stack.Etcd)
	g.Expect(err).NotTo(HaveOccurred())
	log, err := os.Create(filepath.Join(s.LogDir(), "history.log"))
	g.Expect(err).NotTo(HaveOccurred())
	recorder := history.NewRecorder(history.Rules{LaunchTimeout: v1alpha1.DefaultLaunchTimeout}, log)
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- history.Follow(ctx, fmt.Sprintf("http://127.0.0.1:%d", etcd.Port), recorder.Observe) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the history: %v", err)
		}
		_ = log.Close()
		if t.Failed() {
			t.Logf("the end of the history:\n%s", (&stack.Component{LogFile: log.Name()}).LogTail(200))
		}
	})
	return recorder
}
