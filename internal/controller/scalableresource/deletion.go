// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// loweringTimeout is how long a marked Machine waits until Cluster API has acted on lower replicas.
// That takes seconds, or until the requested Machines have been created. If they cannot be
// created, waiting does not help. While the resource is stalled, the Machine waits: if it were
// deleted then, Cluster API would replace it when the stall ends.
const loweringTimeout = 3 * time.Minute

// deleteMarked deletes leaving Machines in two steps. It also marks Machines that have lost their
// instance: they never become a Node, and their claims get other Machines.
//
// A Machine that a user or a health check deletes is blocked by its hook until Karpenter has drained
// its Node and CloudProvider.Delete has marked it. If no claim exists for which Karpenter could
// drain the Node, the Machine is marked at once, and Cluster API drains the Node.
//
// A marked Machine is deleted, and its hooks are removed, when replicas are so low that Cluster API
// does not replace it. deleteMarked returns the time until the next Machine is due; zero if none is.
func (r *Reconciler) deleteMarked(ctx context.Context, snap *decided) (time.Duration, error) {
	if snap.State.Stall != (planner.Stall{}) || snap.State.Unsettled() {
		r.memory.of(snap.Name).stalledAt = snap.State.Now
	}
	deletable, lost := sets.New(snap.Plan.Deletable...), sets.New(snap.Plan.Lost...)
	var errs []error
	var again time.Duration
	current, err := r.isCurrent(ctx, snap)
	if err != nil {
		return 0, err
	}
	for _, name := range slices.Sorted(maps.Keys(snap.Machines)) {
		machine := snap.Machines[name]
		if snap.State.ClusterDeleting && !machine.DeletionTimestamp.IsZero() {
			continue // package clusterdeletion removes its hooks
		}
		if lost.Has(name) {
			errs = append(errs, lifecycle.Mark(ctx, r.clusters.Management.GetClient(), machine, snap.State.Now, true))
		}
		if !lifecycle.IsLeaving(machine) {
			continue
		}
		if !lifecycle.IsMarked(machine) {
			errs = append(errs, r.markDeleted(ctx, snap, machine))
			continue
		}
		ready := current && deletable.Has(machine.Name)
		if left := r.loweringTimeLeft(snap, machine); !ready && left > 0 {
			again = requeue.Soonest(left, again)
			continue
		}
		errs = append(errs, lifecycle.Delete(ctx, r.clusters.Management.GetClient(), machine))
	}
	return again, errors.Join(errs...)
}

// deleteSuspended removes the hooks of Machines that Cluster API deletes during a rollout, or that
// the controller deletes which sets the replicas. These replicas no longer count the Machines, so
// the operator lowers nothing first: a marked Machine, whose Node is drained or needs no drain,
// loses its hooks at once. Machines that are not being deleted stay as they are.
func (r *Reconciler) deleteSuspended(ctx context.Context, snap *decided) error {
	var errs []error
	for _, machine := range snap.Machines {
		switch {
		case machine.DeletionTimestamp.IsZero():
		case lifecycle.IsMarked(machine):
			errs = append(errs, lifecycle.Delete(ctx, r.clusters.Management.GetClient(), machine))
		default:
			errs = append(errs, r.markDeleted(ctx, snap, machine))
		}
	}
	return errors.Join(errs...)
}

// loweringTimeLeft returns for how long a marked Machine still waits. It counts from the last time
// that this process saw the resource stalled or, for a MachinePool, not settled, and not before both
// clusters could be reached. A restart forgets that time, and Cluster API may create a Machine that
// nothing needs.
func (r *Reconciler) loweringTimeLeft(snap *decided, machine *clusterv1.Machine) time.Duration {
	since := lifecycle.LeavingSince(machine, snap.State.Now)
	if snap.State.UpSince.After(since) {
		since = snap.State.UpSince
	}
	if stalled := r.memory.of(snap.Name).stalledAt; stalled.After(since) {
		since = stalled
	}
	return loweringTimeout - snap.State.Now.Sub(since)
}

// isCurrent reports whether replicas are still those from which the plan decided which Machines are
// deletable: those of the resource, and of the MachineSets of these Machines. If they were raised
// since, they may count these Machines, and Cluster API would replace them. The event of the raise
// triggers the next reconcile.
func (r *Reconciler) isCurrent(ctx context.Context, snap *decided) (bool, error) {
	toDo := slices.ContainsFunc(snap.Plan.Deletable, func(name string) bool {
		machine := snap.Machines[name]
		return machine.DeletionTimestamp.IsZero() || lifecycle.WaitsForHook(machine)
	})
	if snap.Resource == nil || !toDo {
		return true, nil
	}
	if current, err := snap.Resource.IsCurrent(ctx, r.clusters); err != nil || !current {
		return false, err
	}
	return r.areSetsCurrent(ctx, snap)
}

// areSetsCurrent reports whether the API server has the MachineSets of the deletable Machines as the cache has them.
// What changes after this read is one of the races in docs/design/deletion.md.
func (r *Reconciler) areSetsCurrent(ctx context.Context, snap *decided) (bool, error) {
	names := sets.New[string]()
	for _, name := range snap.Plan.Deletable {
		if set := snap.Machines[name].Labels[clusterv1.MachineSetNameLabel]; set != "" {
			names.Insert(set)
		}
	}
	for _, name := range sets.List(names) {
		if current, err := scalable.IsSetCurrent(ctx, r.clusters, types.NamespacedName{Namespace: r.clusters.Cluster.Namespace, Name: name}); err != nil || !current {
			return false, err
		}
	}
	return true, nil
}

// markDeleted marks a Machine that a user or another controller deletes and that is blocked by its
// hook, unless Karpenter will drain its Node.
func (r *Reconciler) markDeleted(ctx context.Context, snap *decided, machine *clusterv1.Machine) error {
	if !lifecycle.WaitsForHook(machine) {
		return nil
	}
	claim := snap.Claim(lifecycle.ClaimUID(machine))
	if claim != nil && nodeclaims.IsRegistered(claim) && lifecycle.HasIDOrNodeOf(machine, claim) {
		return nil
	}
	if claim == nil {
		if serves, err := r.stillServes(ctx, snap, machine); err != nil || serves {
			return err
		}
	}
	return lifecycle.Mark(ctx, r.clusters.Management.GetClient(), machine, snap.State.Now, false)
}
