// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
)

// setInPlace sets on a generated resource what its template describes now and what replaces no Machine
// (see generate.InPlace), so a user can change what the resource does even while it cannot create
// Machines. It returns true if it has written: the event of that triggers the next reconcile. A
// resource whose template no longer exists, is Pending or sets what it may not set, or whose
// Cluster is being deleted, stays as it is.
func (r *Reconciler) setInPlace(ctx context.Context, snap *decided) (bool, error) {
	if snap.Template == nil || snap.State.ClusterDeleting || pattern.Pending(snap.Template) {
		return false, nil
	}
	resource := snap.Resource
	changed := resource.DeepCopy()
	generate.InPlace(changed, snap.Template)
	if equality.Semantic.DeepEqual(changed.API(), resource.API()) {
		return false, nil
	}
	allowed, err := generate.ReadAllowed(ctx, r.clusters, snap.Template)
	if err != nil {
		return false, err
	}
	if allowed.Metadata(&snap.Template.Spec) != nil {
		return false, nil // a condition of the template reports it
	}
	if err := precondition.Write(ctx, r.clusters.Management.GetClient(), resource.API(), changed.API(), "changing in place"); err != nil {
		return false, err
	}
	log.FromContext(ctx).Info("changed scalable resource in place, because its template has changed", "kind", resource.Kind().Name(), "resource", resource.Key())
	return true, nil
}
