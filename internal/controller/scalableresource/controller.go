// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"sync"

	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// Reconciler reconciles the scalable resources of the served Cluster.
type Reconciler struct {
	clusters *operator.Clusters
	catalog  *catalog.Catalog
	recorder events.Recorder
	clock    clock.PassiveClock
	spacing  *enqueue.Spacing
	pace     *pace

	// stalledAt is when this process last saw that a resource was stalled. loweringTimeLeft counts
	// from then on.
	stalledAt sync.Map
	// reasons are those that were last logged for a resource.
	reasons sync.Map
}

// NewReconciler returns the reconciler for the served Cluster.
func NewReconciler(clusters *operator.Clusters, catalog *catalog.Catalog, recorder events.Recorder, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{clusters: clusters, catalog: catalog, recorder: recorder, clock: clock, spacing: enqueue.NewSpacing(clock), pace: newPace(clock)}
}

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	return enqueue.Resources(ctrl.NewControllerManagedBy(mgr).Named("capi.scalableresource"), r.clusters, r.spacing).
		// The durations of a template, and its deletion, decide for how long its resources and
		// their spare Machines stay, and its version which resource waiting claims get.
		Watches(&v1alpha1.KarpenterMachineTemplate{}, enqueue.ResourcesOfTemplate(r.clusters), builder.WithPredicates(enqueue.TemplateChanged())).
		WatchesRawSource(source.Kind[client.Object](r.clusters.Management.GetCache(), &clusterv1.MachineDeployment{}, enqueue.ResourcesOfFollowers(r.clusters), pattern.Changed())).
		Complete(r)
}

// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates,verbs=list;watch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=machinedeployments;machinepools,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=machinesets,verbs=get;list;watch;patch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;patch;delete

// Reconcile reconciles the scalable resource of the given name.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return requeue.AfterConflict(r.reconcile(ctx, request.Name))
}

func (r *Reconciler) reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	r.spacing.Begin(name)
	if adopted, err := r.adopt(ctx, name); err != nil || adopted {
		return reconcile.Result{}, err
	}
	snap, err := snapshot.Load(ctx, r.clusters, r.catalog, name, r.clock.Now(), nil, nil)
	if err != nil || snap == nil {
		return reconcile.Result{}, err
	}
	r.spacing.SetSize(name, len(snap.Claims)+len(snap.Machines))
	r.logReasons(ctx, snap)
	r.reportUnsettled(snap)
	if snap.Suspended && !snap.ClusterDeleting {
		return reconcile.Result{}, r.deleteSuspended(ctx, snap)
	}
	if corrected, err := r.fixTimes(ctx, snap); err != nil || corrected {
		return reconcile.Result{}, err
	}
	removed := r.markAndUnlink(ctx, snap)
	waits, left := r.deleteMarked(ctx, snap)
	result, err := r.scale(ctx, snap)
	if err := errors.Join(removed, left, err); err != nil {
		return reconcile.Result{}, err
	}
	result.RequeueAfter = requeue.Soonest(result.RequeueAfter, waits, snap.DueIn())
	return result, nil
}

// scale creates the resource, or sets its replicas and annotations.
func (r *Reconciler) scale(ctx context.Context, snap *snapshot.Snapshot) (reconcile.Result, error) {
	switch resource := snap.Resource; {
	case resource == nil:
		r.pace.forget(snap.Name)
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
func (r *Reconciler) update(ctx context.Context, snap *snapshot.Snapshot) (reconcile.Result, error) {
	resource := snap.Resource
	changed := resource.DeepCopy()
	snap.Scale(changed)
	empty := setEmptySince(changed, snap)
	if empty.expired {
		precondition := client.Preconditions{UID: new(resource.GetUID()), ResourceVersion: new(resource.GetResourceVersion())}
		err := client.IgnoreNotFound(r.clusters.Management.GetClient().Delete(ctx, resource.API(), precondition))
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
	if wait := r.pace.wait(snap.Name); wait > 0 && raises {
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
	if raises {
		r.pace.note(snap.Name, after-before)
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
func (r *Reconciler) notPatched(ctx context.Context, snap *snapshot.Snapshot, raises bool, err error) (reconcile.Result, error) {
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
