// SPDX-License-Identifier: Apache-2.0

package generatedcopy

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
)

// generated counts what was generated from a template and exists.
type generated struct {
	// resources include adopted ones, until their adoption has ended.
	resources, copies int
	// endsWithCluster reports whether Cluster API deletes all of it, or has deleted it: the Cluster
	// is being deleted or does not exist.
	endsWithCluster bool
}

// isLeft reports whether the deletion of the template waits for any of it.
func (g generated) isLeft() bool { return !g.endsWithCluster && g.resources+g.copies > 0 }

// removeFinalizer removes the finalizer of a template that is being deleted, as soon as no NodeClaim
// uses it and nothing that was generated from it is left. The other controllers delete that: they
// keep nothing of such a template for reuse. What a cache that is behind does not show is deleted
// afterwards, like what was generated from a template that no longer exists.
func (r *Reconciler) removeFinalizer(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, kept generated) error {
	if template == nil || template.DeletionTimestamp.IsZero() || kept.isLeft() {
		return nil
	}
	claims, err := catalog.Claims(ctx, r.clusters, template)
	if err != nil || len(claims) > 0 {
		return err
	}
	stored := template.DeepCopy()
	if !controllerutil.RemoveFinalizer(template, v1alpha1.TerminationFinalizer) {
		return nil
	}
	if err := precondition.Write(ctx, r.clusters.Workload.GetClient(), stored, template, "removing the finalizer of"); err != nil {
		return err
	}
	log.FromContext(ctx).Info("removed the finalizer of a template of which nothing is left", "KarpenterMachineTemplate", template.Name)
	return nil
}
