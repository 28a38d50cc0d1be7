// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// loweringTimeout is for how long a chosen Machine waits for the lower number to have taken
// effect. That takes seconds, or until the Machines have been made that were asked
// for. If these cannot be made, nothing is gained by waiting. While Cluster API does not
// work on the resource, it waits: whatever is deleted then would be created again as soon
// as that resumes.
const loweringTimeout = 3 * time.Minute

// deleteMarked lets the leaving Machines go, in two steps, and chooses those that have lost
// their instance: of these, Cluster API makes nothing any more, and their claims get others.
//
// A Machine that somebody else deletes, by hand or by a health check, waits with
// its hook until Karpenter has drained its Node: CloudProvider.Delete
// chooses it then. If no claim is there that Karpenter could drain it for, it is
// chosen at once, and Cluster API drains it.
//
// A chosen Machine is deleted, and its hooks are taken away, when replicas are so few
// that no other is made in its place. It returns after what time to look again; zero
// for no time.
func (r *Reconciler) deleteMarked(ctx context.Context, snap *snapshot.Snapshot) (time.Duration, error) {
	if snap.Stalled() {
		r.stalledAt.Store(snap.Name, snap.Now)
	}
	var errs []error
	var again time.Duration
	current, err := r.isCurrent(ctx, snap)
	if err != nil {
		return 0, err
	}
	for _, name := range slices.Sorted(maps.Keys(snap.Machines)) {
		machine := snap.Machines[name]
		if snap.IsLost(machine) {
			errs = append(errs, requeue.IgnoreChanged(lifecycle.Mark(ctx, r.clusters.Management.GetClient(), machine, snap.Now, true)))
		}
		if !lifecycle.IsLeaving(machine) {
			continue
		}
		if snap.ClusterDeleting && !machine.DeletionTimestamp.IsZero() {
			// Cluster API drains nothing then, but waits for pre-terminate hooks all the same.
			errs = append(errs, client.IgnoreNotFound(lifecycle.Delete(ctx, r.clusters.Management.GetClient(), machine)))
			continue
		}
		if !lifecycle.IsMarked(machine) {
			errs = append(errs, requeue.IgnoreChanged(r.markDeleted(ctx, snap, machine)))
			continue
		}
		ready := current && slices.Contains(snap.Plan.Deletable, machine.Name)
		if left := r.loweringTimeLeft(snap, machine); !ready && left > 0 {
			again = requeue.Soonest(left, again)
			continue
		}
		errs = append(errs, client.IgnoreNotFound(lifecycle.Delete(ctx, r.clusters.Management.GetClient(), machine)))
	}
	return again, errors.Join(errs...)
}

// deleteSuspended lets the Machines go that Cluster API deletes for a rollout, or that others delete
// whose replicas a resource has. These replicas do not count the Machines any more, so nothing
// has to be lowered first: a Machine that is chosen, because its claim is drained or needs no
// drain, loses its hooks at once. Machines that nobody deletes stay as they are.
func (r *Reconciler) deleteSuspended(ctx context.Context, snap *snapshot.Snapshot) error {
	var errs []error
	for _, machine := range snap.Machines {
		switch {
		case machine.DeletionTimestamp.IsZero():
		case lifecycle.IsMarked(machine):
			errs = append(errs, client.IgnoreNotFound(lifecycle.Delete(ctx, r.clusters.Management.GetClient(), machine)))
		default:
			errs = append(errs, requeue.IgnoreChanged(r.markDeleted(ctx, snap, machine)))
		}
	}
	return errors.Join(errs...)
}

// loweringTimeLeft returns for how long a chosen Machine still waits. It counts from when this
// process last saw that Cluster API did not work on the resource; after a restart that is
// forgotten, and a Machine may be created in vain.
func (r *Reconciler) loweringTimeLeft(snap *snapshot.Snapshot, machine *clusterv1.Machine) time.Duration {
	since := lifecycle.LeavingSince(machine, snap.Now)
	if stood, found := r.stalledAt.Load(snap.Name); found && stood.(time.Time).After(since) {
		since = stood.(time.Time)
	}
	return loweringTimeout - snap.Now.Sub(since)
}

// isCurrent tells whether replicas are as they were when it was decided which Machines
// are let go. If they were raised since, these Machines may be counted, and would be
// replaced; the event of that brings the next reconcile.
func (r *Reconciler) isCurrent(ctx context.Context, snap *snapshot.Snapshot) (bool, error) {
	toDo := slices.ContainsFunc(snap.Plan.Deletable, func(name string) bool {
		machine := snap.Machines[name]
		return machine.DeletionTimestamp.IsZero() || lifecycle.WaitsForHook(machine)
	})
	if snap.Resource == nil || !toDo {
		return true, nil
	}
	return snap.Resource.IsCurrent(ctx, r.clusters)
}

// markDeleted chooses a Machine that somebody else deletes and that waits with its
// hook, unless Karpenter will drain its Node.
func (r *Reconciler) markDeleted(ctx context.Context, snap *snapshot.Snapshot, machine *clusterv1.Machine) error {
	if !lifecycle.WaitsForHook(machine) {
		return nil
	}
	claim, found := lo.Find(snap.Claims, func(claim karpv1.NodeClaim) bool { return claim.UID == lifecycle.ClaimUID(machine) })
	if found && claim.StatusConditions().Get(karpv1.ConditionTypeRegistered).IsTrue() && claim.Status.ProviderID == machine.Spec.ProviderID {
		return nil
	}
	if !found {
		if serves, err := r.stillServes(ctx, snap, machine); err != nil || serves {
			return err
		}
	}
	return lifecycle.Mark(ctx, r.clusters.Management.GetClient(), machine, snap.Now, false)
}
