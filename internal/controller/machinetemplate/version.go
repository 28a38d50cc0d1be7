// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/version"
)

// setVersionReady sets which Kubernetes version new Machines get, and whether Cluster API creates
// Machines of that version. It also watches the kind of the Cluster's control plane.
func (r *Reconciler) setVersionReady(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	controlPlane, followed, err := version.Read(ctx, r.clusters, template)
	if err != nil {
		return err
	}
	if !controlPlane.Kind.Empty() {
		if err := r.kinds.Watch(controlPlane.Kind, enqueue.Later(r.templates.All)); err != nil {
			return err
		}
	}
	if pattern.Pending(template) {
		template.Status.Version = ""
		template.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionVersionReady, v1alpha1.ReasonReferenceMissing, waitsForFrom)
		return nil
	}
	bootstrap, err := r.bootstrapOf(ctx, template)
	if err != nil {
		return err
	}
	v := version.Of(template, bootstrap, controlPlane, followed)
	template.Status.Version = v.Name
	conditions := template.StatusConditions()
	if v.Problem != "" {
		conditions.SetFalse(v1alpha1.ConditionVersionReady, v.Reason, v.Problem)
		return nil
	}
	conditions.SetTrueWithReason(v1alpha1.ConditionVersionReady, v.Reason, v.Message)
	return nil
}

// bootstrapOf returns the bootstrap template, which can have annotations for Cluster API's checks; nil
// if there is none. Condition BootstrapReady reports one that does not exist or cannot be used.
func (r *Reconciler) bootstrapOf(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (*unstructured.Unstructured, error) {
	ref := template.Spec.Template.Spec.Bootstrap.ConfigRef
	if !ref.IsDefined() || template.StatusConditions().Get(v1alpha1.ConditionBootstrapReady).IsFalse() {
		return nil, nil
	}
	return reference.Get(ctx, r.clusters.Management.GetClient(), ref, r.clusters.Cluster.Namespace)
}
