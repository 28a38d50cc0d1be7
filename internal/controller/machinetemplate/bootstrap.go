// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// setBootstrapReady sets whether the bootstrap template exists and can be used, and whether the template
// may refer to it. If the template names a Secret instead, it is not read, so that this operator needs no
// right to read Secrets. Cluster API does not read it either.
func (r *Reconciler) setBootstrapReady(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	conditions := template.StatusConditions()
	if pattern.Pending(template) {
		conditions.SetUnknownWithReason(v1alpha1.ConditionBootstrapReady, v1alpha1.ReasonReferenceMissing, waitsForFrom)
		return nil
	}
	allowed, err := r.readAllowed(ctx, template)
	if err != nil {
		return err
	}
	if err := allowed.Bootstrap(lo.FromPtr(template.Spec.Template.Spec.Bootstrap.DataSecretName)); err != nil {
		conditions.SetFalse(v1alpha1.ConditionBootstrapReady, reasonOf(err), err.Error())
		return nil
	}
	if ref := template.Spec.Template.Spec.Bootstrap.ConfigRef; ref.IsDefined() {
		accepts := func(base *unstructured.Unstructured) error {
			return generate.MayUse(template, v1alpha1.PatchTargetBootstrap, base, allowed)
		}
		problem, err := r.resolve(ctx, ref, scalable.KindOf(template.Spec.ScalableResource), accepts)
		if err != nil {
			return err
		}
		if problem != nil {
			conditions.SetFalse(v1alpha1.ConditionBootstrapReady, problem.reason, "spec.template.spec.bootstrap.configRef: "+problem.message)
			return nil
		}
	}
	conditions.SetTrue(v1alpha1.ConditionBootstrapReady)
	return nil
}
