// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// annotate sets the annotations of the template on a generated resource, and removes those that the
// template no longer has. Cluster API copies them to MachineSets, so a user can change what these
// do while they cannot create Machines. It returns true if it has written: the event of that
// triggers the next reconcile. A resource whose template no longer exists keeps its annotations.
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
		return false, client.IgnoreNotFound(fmt.Errorf("setting the annotations of %s: %w", resource, err))
	}
	log.FromContext(ctx).Info("set annotations from template", "kind", resource.Kind().Name(), "resource", resource.Key())
	return true, nil
}
