// SPDX-License-Identifier: Apache-2.0

//go:build provider

package provider

import (
	"context"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// cannotRestart expects a remediation template, which vSphere does not have, to be reported. The template is ready nevertheless, and
// replaces a virtual machine that vanishes.
func (v *onVSphere) cannotRestart(ctx context.Context, g *WithT) {
	v.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) {
		spec.Remediation = &v1alpha1.Remediation{TemplateRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: vsphereGroup.Group, Kind: "VSphereRemediationTemplate", Name: "reboot",
		}}
	})
	reported := v.expectReady(ctx, g).StatusConditions().Get(v1alpha1.ConditionRemediationReady)
	g.Expect(reported.IsFalse()).To(BeTrue(), "%+v", reported)
	g.Expect(reported.Reason).To(Equal(v1alpha1.ReasonReferenceKindUnusable))
	g.Expect(reported.Message).To(And(
		ContainSubstring("no kind VSphereRemediationTemplate."+vsphereGroup.Group),
		ContainSubstring("install its provider, or correct apiGroup and kind"),
		ContainSubstring("Unhealthy Nodes are replaced instead"),
	))
	v.lose(ctx, g)

	v.edit(ctx, g, func(spec *v1alpha1.KarpenterMachineTemplateSpec) { spec.Remediation = nil })
	g.Expect(v.expectReady(ctx, g).StatusConditions().Get(v1alpha1.ConditionRemediationReady)).To(BeNil())
}
