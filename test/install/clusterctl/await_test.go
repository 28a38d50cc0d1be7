// SPDX-License-Identifier: Apache-2.0

//go:build install

package clusterctl

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/census"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/trials/demo/manifests"
)

// await waits until the counts meet a condition.
func await(ctx context.Context, t *testing.T, s *stack.Stack, what string, within time.Duration, wanted func(census.Census) bool) census.Census {
	t.Helper()
	var now census.Census
	err := s.Await(ctx, within, what, func(ctx context.Context) (bool, string, error) {
		var err error
		if now, err = census.Of(ctx, s.Workload, s.Workload, client.MatchingLabels{"demo": "true"}); err != nil {
			return false, err.Error(), nil
		}
		return wanted(now), now.String(), nil
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Logf("%s: %s", what, now)
	return now
}

// settle stops Karpenter's consolidation, and waits until what it has begun is done.
func settle(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	g := NewWithT(t)
	pool := &karpv1.NodePool{}
	g.Expect(s.Workload.Get(ctx, client.ObjectKey{Name: "general"}, pool)).To(Succeed())
	frozen := pool.DeepCopy()
	frozen.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "0"}}
	g.Expect(s.Workload.Patch(ctx, frozen, client.MergeFrom(pool))).To(Succeed())
	quiet := 0
	g.Expect(s.Await(ctx, 3*time.Minute, "Karpenter to have nothing in progress", func(ctx context.Context) (bool, string, error) {
		claims := &karpv1.NodeClaimList{}
		if err := s.Workload.List(ctx, claims); err != nil {
			return false, err.Error(), nil
		}
		busy := lo.CountBy(claims.Items, func(claim karpv1.NodeClaim) bool {
			return !claim.DeletionTimestamp.IsZero() || !claim.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized) ||
				claim.StatusConditions().IsTrue(karpv1.ConditionTypeDisruptionReason)
		})
		// A decision from before the change can still be in progress.
		quiet = lo.Ternary(busy == 0, quiet+1, 0)
		return quiet > 50, fmt.Sprintf("%d claims are launched or deleted", busy), nil
	})).To(Succeed())
}

// kept are the kinds that make up Nodes, from the claim to the machine.
var kept = []schema.GroupVersionKind{
	{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"},
	{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"},
	{Group: "karpenter.cluster.x-k8s.io", Version: "v1alpha1", Kind: "KarpenterMachineTemplate"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineDeployment"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineSet"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha1", Kind: "SimulatedMachineTemplate"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha1", Kind: "SimulatedMachine"},
}

// standing returns for all Nodes whether they are ready, and for all objects behind them what a change of their spec or
// a deletion would change: the generation, and whether they are being deleted.
func standing(ctx context.Context, g Gomega, s *stack.Stack) map[string]string {
	all := map[string]string{}
	nodes := &corev1.NodeList{}
	g.Expect(s.Workload.List(ctx, nodes, stack.Workers)).To(Succeed())
	for _, node := range nodes.Items {
		ready := lo.ContainsBy(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		all["Node "+node.Name] = fmt.Sprintf("ready %t, unschedulable %t, deleted %t", ready, node.Spec.Unschedulable, !node.DeletionTimestamp.IsZero())
	}
	g.Expect(all).NotTo(BeEmpty())
	for _, kind := range kept {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		g.Expect(s.Workload.List(ctx, list)).To(Succeed(), kind.Kind)
		g.Expect(list.Items).NotTo(BeEmpty(), kind.Kind)
		for _, object := range list.Items {
			all[fmt.Sprintf("%s %s %s", kind.Kind, object.Name, object.UID)] =
				fmt.Sprintf("generation %d, deleted %t", object.Generation, !object.DeletionTimestamp.IsZero())
		}
	}
	return all
}

// stays checks for some time that nothing of this changes.
func stays(ctx context.Context, t *testing.T, s *stack.Stack, before map[string]string) {
	t.Helper()
	g := NewWithT(t)
	g.Consistently(ctx, func(g Gomega) { g.Expect(standing(ctx, g, s)).To(Equal(before)) }).
		WithTimeout(15 * time.Second).WithPolling(time.Second).Should(Succeed())
}

// apply creates what the demo creates.
func apply(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	g := NewWithT(t)
	for _, name := range manifests.All {
		content, err := manifests.Read(name, kinds.MachineDeployment)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Create(ctx, content)).To(Succeed(), name)
	}
}

// deployments returns the Deployments of the demo.
func deployments(ctx context.Context, g *WithT, s *stack.Stack) []appsv1.Deployment {
	list := &appsv1.DeploymentList{}
	g.Expect(s.Workload.List(ctx, list, client.MatchingLabels{"demo": "true"})).To(Succeed())
	return list.Items
}

// gone checks that an object does not exist.
func gone(ctx context.Context, g Gomega, s *stack.Stack, object client.Object) {
	err := s.Workload.Get(ctx, client.ObjectKeyFromObject(object), object)
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%T %s: %v", object, object.GetName(), err)
}
