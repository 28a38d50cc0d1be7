// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// scale creates the resource, or sets its replicas and annotations.
func (r *Reconciler) scale(ctx context.Context, snap *decided) (reconcile.Result, error) {
	switch resource := snap.Resource; {
	case resource == nil:
		known := r.memory.of(snap.Name)
		known.pace, known.lowered = nil, lowered{} // they were of an earlier resource of that name
		again, err := r.ensureResource(ctx, snap)
		return reconcile.Result{RequeueAfter: again}, err
	case !resource.GetDeletionTimestamp().IsZero():
		return reconcile.Result{}, r.moveWaiting(ctx, snap)
	case scalable.Adopted(resource):
		if disowned, err := r.endAdoption(ctx, snap); err != nil || disowned {
			return reconcile.Result{}, err
		}
	default:
		// An error with these must not prevent the update of replicas.
		moved := r.moveWaiting(ctx, snap)
		changed, err := r.setInPlace(ctx, snap)
		if changed {
			return reconcile.Result{}, moved
		}
		result, updated := r.update(ctx, snap)
		return result, errors.Join(moved, err, updated)
	}
	return r.update(ctx, snap)
}

// update sets replicas and the time since which the resource is empty, and deletes a resource that
// has been empty for emptyTTLSeconds.
func (r *Reconciler) update(ctx context.Context, snap *decided) (reconcile.Result, error) {
	resource := snap.Resource
	changed := resource.DeepCopy()
	snap.scale(changed)
	empty := setEmptySince(changed, snap)
	if empty.expired {
		asRead := client.Preconditions{UID: new(resource.GetUID()), ResourceVersion: new(resource.GetResourceVersion())}
		err := client.IgnoreNotFound(r.clusters.Management.GetClient().Delete(ctx, resource.API(), asRead))
		if err == nil {
			log.FromContext(ctx).Info("deleted empty scalable resource", "kind", resource.Kind().Name(), "resource", resource.Key())
		}
		return reconcile.Result{}, err
	}
	before, after := resource.Replicas(), changed.Replicas()
	if equal(resource, changed) {
		return reconcile.Result{RequeueAfter: empty.expiresIn}, r.scaleMachineSets(ctx, snap, after)
	}
	// Lowering is never delayed: a Machine that disappears earlier would be replaced.
	raises := after > before
	known := r.memory.of(snap.Name)
	if wait := max(known.pace.wait(r.clock.Now()), r.spacing.MoreExpected(snap.Name)); wait > 0 && raises {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if raises {
		if inactive, err := r.clusters.Inactive(ctx); err != nil || inactive {
			return reconcile.Result{}, err // the event of the Cluster triggers the next reconcile
		}
	}
	// The resourceVersion is the precondition: replicas are changed only from the value that the
	// plan was made from.
	if err := precondition.Write(ctx, r.clusters.Management.GetClient(), resource.API(), changed.API(), "patching"); err != nil {
		return r.notPatched(ctx, snap, raises, err)
	}
	switch {
	case raises:
		known.pace.note(r.clock.Now(), after-before)
	case after < before:
		known.lowered.note(changed)
	}
	if before != after {
		log.FromContext(ctx).Info("set replicas", "kind", resource.Kind().Name(), "resource", resource.Key(), "from", before, "to", after)
	}
	return reconcile.Result{RequeueAfter: empty.expiresIn}, r.scaleMachineSets(ctx, snap, after)
}

// notPatched handles the error of a resource that could not be patched. If its replicas should be
// raised, the operator tries again after createAgainAfter, because no event shows that a webhook
// answers again or accepts what it rejected. If the API server has rejected the write, the waiting
// claims fail after launchTimeoutSeconds.
func (r *Reconciler) notPatched(ctx context.Context, snap *decided, raises bool, err error) (reconcile.Result, error) {
	if !raises || requeue.IsChanged(err) {
		return reconcile.Result{}, err
	}
	log.FromContext(ctx).Error(err, "cannot raise replicas")
	result := reconcile.Result{RequeueAfter: createAgainAfter}
	if !isRejection(err) {
		return result, nil
	}
	return result, r.rejectAll(ctx, snap, err)
}

// equal reports whether two resources are equal in everything that update sets.
func equal(a, b *scalable.Resource) bool {
	return a.HasReplicas() && a.Replicas() == b.Replicas() &&
		a.GetAnnotations()[v1alpha1.EmptySinceAnnotation] == b.GetAnnotations()[v1alpha1.EmptySinceAnnotation]
}
