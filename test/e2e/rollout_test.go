// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	asking "github.com/karpenter-capi/karpenter-capi/test/harness/ask"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// A change breaks Nodes: they register, and are never initialized. Only the canary is tried, the rollout stops with a
// condition, and undo lets all Nodes stay that were there before. Afterwards a change that works replaces all Nodes.
func TestRollout(t *testing.T) {
	t.Parallel()
	takesTurns(t)
	ctx, s := newStack(t, stack.Options{})
	g := NewWithT(t)
	setControlPlane(ctx, g, s, "v1.36.0", "")
	run := &drift{s: s, w: newObserver(ctx, t, s)}
	create(ctx, g, s, kinds.MachineDeployment, "drift.yaml")
	run.expectRunning(ctx, g, map[string]int{"small": 4, "large": 3})
	before := run.claimsOf(ctx, g, "")
	run.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
		spec.Rollout = &v1alpha1.Rollout{SoakSeconds: new(int32(2)), ProgressDeadlineSeconds: new(int32(15))}
	})
	// rollout waits until the rollout has a reason.
	rollout := func(reason, text string) {
		t.Helper()
		g.Eventually(ctx, func(g Gomega) {
			template := &v1alpha1.KarpenterMachineTemplate{}
			g.Expect(s.Workload.Get(ctx, client.ObjectKey{Name: "drift"}, template)).To(Succeed())
			g.Expect(template.StatusConditions().Get(v1alpha1.ConditionRolloutProgressing)).To(And(
				HaveField("ObservedGeneration", template.Generation), HaveField("Reason", reason), HaveField("Message", ContainSubstring(text))))
		}).WithTimeout(4 * time.Minute).WithPolling(poll).Should(Succeed())
	}
	rollout(v1alpha1.ReasonRolloutComplete, "")

	run.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
		spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTargetInfrastructure, JSONPatches: []v1alpha1.JSONPatch{{
			Op: "add", Path: "/spec/template/spec/nodeTaints",
			Value: &apiextensionsv1.JSON{Raw: []byte(`[{"key":"node.cloudprovider.kubernetes.io/uninitialized","value":"true","effect":"NoSchedule"}]`)},
		}}}}
	})
	rollout(v1alpha1.ReasonRolloutStopped, "has a Node that is registered and not initialized")
	g.Expect(run.w.everDrifted()).To(HaveLen(1), "only the canary was outdated for Karpenter")
	g.Expect(run.claimsOf(ctx, g, "")).To(ContainElements(lo.ToAnySlice(before)...), "Karpenter waits for the new Node, so no Node is lost")

	_, messages, err := asking.Run(ctx, s, "rollout", "undo", "drift")
	g.Expect(err).NotTo(HaveOccurred(), messages)
	rollout(v1alpha1.ReasonRolloutRolling, "")
	// Karpenter does not replace a Node that was never initialized.
	for _, name := range lo.Without(run.claimsOf(ctx, g, ""), before...) {
		g.Expect(s.Workload.Delete(ctx, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}
	rollout(v1alpha1.ReasonRolloutComplete, "")
	g.Expect(run.claimsOf(ctx, g, "")).To(ContainElements(lo.ToAnySlice(before)...))

	run.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
		spec.Patches = []v1alpha1.Patch{slower("1100ms", "")}
	})
	rollout(v1alpha1.ReasonRolloutComplete, "")
	g.Expect(lo.Intersect(run.claimsOf(ctx, g, ""), before)).To(BeEmpty(), "NodeClaims from before")
	run.expectRunning(ctx, g, map[string]int{"small": 4, "large": 3})
}
