// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// ensureFinalizer adds the finalizer to a template, also to one that an older version of the
// operator has left without. It does so before the template becomes Ready, so that nothing is
// launched from a template without the finalizer. Package generatedcopy removes the finalizer.
func (r *Reconciler) ensureFinalizer(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	if !template.DeletionTimestamp.IsZero() {
		return nil
	}
	stored := template.DeepCopy()
	if !controllerutil.AddFinalizer(template, v1alpha1.TerminationFinalizer) {
		return nil
	}
	return precondition.Write(ctx, r.clusters.Workload.GetClient(), stored, template, "adding the finalizer to")
}

// setDeletable sets what the deletion of a template waits for. A template that is not being deleted
// does not have this condition.
func (r *Reconciler) setDeletable(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	if template.DeletionTimestamp.IsZero() {
		return nil
	}
	claims, err := catalog.Claims(ctx, r.clusters, template)
	if err != nil {
		return err
	}
	conditions := template.StatusConditions()
	if len(claims) > 0 {
		message := claimsRemain(claims)
		conditions.SetFalse(v1alpha1.ConditionDeletable, v1alpha1.ReasonNodeClaimsRemain, message)
		r.recorder.Publish(waitsForClaims(template, message))
		return nil
	}
	resources, err := scalable.List(ctx, r.clusters, client.MatchingLabels{v1alpha1.TemplateLabel: template.Name})
	if err != nil {
		return fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	conditions.SetFalse(v1alpha1.ConditionDeletable, v1alpha1.ReasonGeneratedObjectsRemain, objectsRemain(template.Name, resources))
	return nil
}

// claimsRemain returns the message for a template whose deletion waits for NodeClaims.
func claimsRemain(claims []karpv1.NodeClaim) string {
	names := lo.Map(claims, func(claim karpv1.NodeClaim, _ int) string { return claim.Name })
	return fmt.Sprintf("the template is being deleted and waits for %d NodeClaims: delete the NodePools that use it, or let them use another template. The NodeClaims are %s", len(claims), budget.Names(names, maxNamed))
}

// objectsRemain returns the message for a template whose deletion waits for the deletion of what was
// generated from it.
func objectsRemain(template string, resources []*scalable.Resource) string {
	names := lo.Map(resources, func(resource *scalable.Resource, _ int) string { return resource.String() })
	if len(names) == 0 {
		return fmt.Sprintf("the template is being deleted and waits for the copies of its base templates: if that takes longer than a minute, look for finalizers on the objects of the management cluster with the label %s=%s", v1alpha1.TemplateLabel, template)
	}
	return fmt.Sprintf("the template is being deleted and waits for what was generated from it: if that takes longer than a minute, look whether the Cluster or these objects are paused. These are %s", budget.Names(names, maxNamed))
}
