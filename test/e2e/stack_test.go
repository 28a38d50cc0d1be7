// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"hash/crc32"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/karpenter-capi/karpenter-capi/test/harness/rotation"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stacktest"
)

//go:embed testdata/*.yaml
var testdata embed.FS

// How often conditions are checked. With timeouts of one minute, the exact value does not matter.
const poll = 500 * time.Millisecond

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if err := reportRights(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// newStack starts a stack that ends with the test. It has two clusters that share an etcd, unless the test chooses
// another placement.
func newStack(t *testing.T, opts stack.Options) (context.Context, *stack.Stack) {
	t.Helper()
	if opts.Placement == "" && opts.Manages == nil && opts.NeighbourOf == nil && !opts.HasNeighbour {
		opts.Placement, opts.OneEtcd = stack.InWorkload, true
	}
	ctx := stacktest.Context(t)
	return ctx, stacktest.Up(ctx, t, opts, expectRights)
}

// forEachKind runs a test for each kind of scalable resource in its turn, one after the other on one stack, and checks that nothing
// is left of it each time. It ends after a failure, because the objects that are left would disturb the next run.
func forEachKind(ctx context.Context, t *testing.T, s *stack.Stack, test func(g *WithT, kind kinds.Kind)) {
	t.Helper()
	for _, kind := range inTurn(t, kinds.All) {
		if !t.Run(string(kind), func(t *testing.T) {
			g := NewWithT(t)
			test(g, kind)
			expectOnly(ctx, g, s, kind)
			removeAll(ctx, g, s)
		}) {
			return
		}
	}
}

// inTurn returns the part of a test that is its turn: for `make test-e2e` one of the given cases, which depends on the commit and on
// the name of the test, and otherwise all.
func inTurn[T any](t *testing.T, cases []T) []T {
	t.Helper()
	first := groupOf(t)
	return lo.Filter(cases, func(_ T, i int) bool { return rotation.Turn(len(cases), first+i) })
}

// takesTurns skips a test if it is not its turn: `make test-e2e` runs a third of these tests, which depends on the commit, and
// `make test-e2e ROTATION=all` runs all. A test without it concerns the path from Pods to Nodes and back, or changes in turn itself.
func takesTurns(t *testing.T) {
	t.Helper()
	if !rotation.Turn(3, groupOf(t)) {
		t.Skipf("it is the turn of other tests; %s=all runs all", rotation.Variable)
	}
}

// groupOf returns a number that differs from test to test, and is the same in each run.
func groupOf(t *testing.T) int { return int(crc32.ChecksumIEEE([]byte(t.Name()))) }

// create creates the objects of a file in testdata, for a kind of scalable resource.
func create(ctx context.Context, g *WithT, s *stack.Stack, kind kinds.Kind, file string) {
	manifests, err := testdata.ReadFile("testdata/" + file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Create(ctx, kind.Manifests(manifests))).To(Succeed(), file)
}

// createAs does the same with another name instead of that of the file.
func createAs(ctx context.Context, g *WithT, s *stack.Stack, kind kinds.Kind, file, name, as string) {
	manifests, err := testdata.ReadFile("testdata/" + file)
	g.Expect(err).NotTo(HaveOccurred())
	manifests = bytes.ReplaceAll(kind.Manifests(manifests), []byte(name), []byte(as))
	g.Expect(s.Create(ctx, manifests)).To(Succeed(), file)
}
