// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// Other tests depend on this: any process can be killed and started again, and a stack is stopped completely even if
// some of its processes have ended.
func TestStackLifecycle(t *testing.T) {
	t.Parallel()
	ctx, s := newStack(t, stack.Options{Placement: stack.Joined})
	g := NewWithT(t)

	_, err := stack.Up(ctx, stack.Options{Dir: s.Dir()})
	var busy *stack.BusyError
	g.Expect(errors.As(err, &busy)).To(BeTrue(), "a second stack in the same folder: %v", err)

	for _, name := range []string{stack.Operator, stack.APIServer, stack.Kwok} {
		g.Expect(s.KillComponent(ctx, name)).To(Succeed())
	}
	states := map[string]string{}
	for _, status := range s.Status(ctx) {
		states[status.Name] = status.State
	}
	g.Expect(states).To(And(
		HaveKeyWithValue(stack.Operator, "not running"),
		HaveKeyWithValue(stack.APIServer, "not running"),
		HaveKeyWithValue(stack.Etcd, "ready"),
	))

	g.Expect(s.StartComponent(ctx, stack.APIServer)).To(Succeed())
	g.Expect(s.Workload.List(ctx, &corev1.NodeList{})).To(Succeed(), "the API server responds again")
	g.Expect(s.StartComponent(ctx, stack.Operator)).To(Succeed())
	g.Expect(s.StopComponent(ctx, stack.ClusterAPI)).To(Succeed())

	for _, status := range s.Status(ctx) {
		if status.Name == stack.ClusterAPI {
			g.Expect(status.PID).To(BeZero())
		} else {
			g.Expect(status.PID).NotTo(BeZero(), status.Name)
		}
	}

	g.Expect(s.Down(ctx)).To(Succeed(), "after one of its processes has ended")
	_, err = stack.Open(s.Dir())
	var notFound *stack.NotFoundError
	g.Expect(errors.As(err, &notFound)).To(BeTrue(), "the state is deleted: %v", err)
}
