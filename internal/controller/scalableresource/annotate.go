// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// annotate sets the annotations of a generated resource that its template wants, and
// removes those that the template no longer has. Cluster API copies them to MachineSets,
// so a user can change what these do while they cannot create Machines. It returns true
// if it wrote: the event of that brings the next reconcile. Without its template, a
// resource keeps what it has.
func (r *Reconciler) annotate(ctx context.Context, snap *snapshot.Snapshot) (bool, error) {
	if snap.Template == nil {
		return false, nil
	}
	resource := snap.Resource
	annotations := generate.WithTemplateAnnotations(resource.GetAnnotations(), snap.Template.Spec.Template.ScalableResourceAnnotations)
	if maps.Equal(annotations, resource.GetAnnotations()) {
		return false, nil
	}
	changed := resource.DeepCopy()
	changed.SetAnnotations(annotations)
	if err := r.clusters.Management.GetClient().Patch(ctx, changed.API(), client.MergeFromWithOptions(resource.API(), client.MergeFromWithOptimisticLock{})); err != nil {
		return false, requeue.IgnoreChanged(fmt.Errorf("setting the annotations of %s: %w", resource, err))
	}
	log.FromContext(ctx).Info("set annotations from template", "kind", resource.Kind().Name(), "resource", resource.Key())
	return true, nil
}
