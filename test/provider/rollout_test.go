// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"context"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	asking "github.com/karpenter-capi/karpenter-capi/test/harness/ask"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/vsphere"
)

// The base templates besides the one of the sample: one names a template that vCenter does not have, and one takes the addresses of
// its virtual machines from the pool.
const (
	missingBase = "workers-missing"
	pooledBase  = "workers-pool"
)

// stopRollout expects the rollout of a base template that vCenter cannot serve to stop after one try, and that nothing is replaced,
// although disruption budgets allow it.
func (v *onVSphere) stopRollout(ctx context.Context, g *WithT) {
	v.editDisruption(ctx, g, func(disruption *karpv1.Disruption) {
		disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
		disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("Never")
	})
	v.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
		spec.Rollout = &v1alpha1.Rollout{SoakSeconds: lo.ToPtr[int32](10)}
		spec.LaunchTimeoutSeconds = lo.ToPtr[int32](30)
	})
	v.expectRollout(ctx, g, v1alpha1.ReasonRolloutComplete, "")
	before := v.machines(ctx, g)

	v.createBase(ctx, g, missingBase, func(spec map[string]any) { spec["template"] = "ubuntu-that-does-not-exist" })
	v.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
		spec.Template.Spec.InfrastructureRef.Name = missingBase
	})
	v.expectRollout(ctx, g, v1alpha1.ReasonRolloutStopped, "could not be launched (LaunchTimeout)", `unable to find template by name "ubuntu-that-does-not-exist"`)

	_, messages, err := asking.Run(ctx, v.Stack, "rollout", "undo", "general")
	g.Expect(err).NotTo(HaveOccurred(), messages)
	v.expectRollout(ctx, g, v1alpha1.ReasonRolloutComplete, "")
	g.Expect(v.template(ctx, g).Spec.Template.Spec.InfrastructureRef.Name).To(Equal("workers"))
	v.expectRunning(ctx, g, len(before))
	g.Expect(uuids(v.machines(ctx, g))).To(ConsistOf(uuids(before)), "virtual machines after undo")
}

// rollOut expects all Nodes to be replaced after a base template was named that works, first one and then the others. Templates of
// vSphere cannot be changed.
func (v *onVSphere) rollOut(ctx context.Context, g *WithT) {
	claims, machines := v.stayingClaims(ctx, g), uuids(v.machines(ctx, g))
	v.createBase(ctx, g, pooledBase, func(spec map[string]any) {
		devices, _, err := unstructured.NestedSlice(spec, "network", "devices")
		g.Expect(err).NotTo(HaveOccurred())
		device := devices[0].(map[string]any)
		device["dhcp4"] = false
		device["addressesFromPools"] = []any{map[string]any{"apiGroup": vsphere.PoolKind.Group, "kind": vsphere.PoolKind.Kind, "name": poolKey.Name}}
		g.Expect(unstructured.SetNestedSlice(spec, devices, "network", "devices")).To(Succeed())
	})
	v.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
		spec.LaunchTimeoutSeconds = nil
		spec.Template.Spec.InfrastructureRef.Name = pooledBase
	})
	v.expectRollout(ctx, g, v1alpha1.ReasonRolloutSoaking, "")
	g.Expect(lo.Intersect(v.stayingClaims(ctx, g), claims)).To(HaveLen(len(claims)-1), "NodeClaims that are not replaced")
	v.expectRollout(ctx, g, v1alpha1.ReasonRolloutComplete, "")
	eventually(ctx, g, func(g Gomega) {
		g.Expect(lo.Intersect(uuids(v.machines(ctx, g)), machines)).To(BeEmpty(), "virtual machines that were not replaced")
	})
	v.expectRunning(ctx, g, len(machines))
}

// stayingClaims returns the names of the NodeClaims that are not being deleted.
func (v *onVSphere) stayingClaims(ctx context.Context, g Gomega) []string {
	return lo.FilterMap(v.claims(ctx, g), func(c karpv1.NodeClaim, _ int) (string, bool) { return c.Name, c.DeletionTimestamp.IsZero() })
}

// expectRollout waits until the rollout of the present template has a reason, and texts in its message.
func (v *onVSphere) expectRollout(ctx context.Context, g *WithT, reason string, texts ...string) {
	eventually(ctx, g, func(g Gomega) {
		template := v.template(ctx, g)
		condition := template.StatusConditions().Get(v1alpha1.ConditionRolloutProgressing)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.ObservedGeneration).To(Equal(template.Generation))
		g.Expect(condition.Reason).To(Equal(reason), condition.Message)
		for _, text := range texts {
			g.Expect(condition.Message).To(ContainSubstring(text))
		}
	})
}

// createBase creates a copy of the sample's base template, with changes.
func (v *onVSphere) createBase(ctx context.Context, g *WithT, name string, change func(spec map[string]any)) {
	base := &unstructured.Unstructured{}
	base.SetGroupVersionKind(vsphereGroup.WithKind("VSphereMachineTemplate"))
	g.Expect(v.Management.Get(ctx, client.ObjectKey{Namespace: stack.ClusterNamespace, Name: "workers"}, base)).To(Succeed())
	spec, _, err := unstructured.NestedMap(base.Object, "spec", "template", "spec")
	g.Expect(err).NotTo(HaveOccurred())
	change(spec)
	next := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}}
	next.SetGroupVersionKind(base.GroupVersionKind())
	next.SetNamespace(base.GetNamespace())
	next.SetName(name)
	g.Expect(v.Management.Create(ctx, next)).To(Succeed())
}

// uuids returns the UUIDs of virtual machines.
func uuids(machines []vsphere.Machine) []string {
	return lo.Map(machines, func(m vsphere.Machine, _ int) string { return m.UUID })
}
