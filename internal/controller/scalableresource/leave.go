// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// patience is for how long a chosen Machine waits for the lower number to have taken
// effect. That takes seconds, or until the Machines have been made that were asked
// for. If these cannot be made, nothing is gained by waiting. While Cluster API does not
// work on the resource, it waits: whatever is deleted then would be created again as soon
// as that resumes.
const patience = 3 * time.Minute

// leave lets the leaving Machines go, in two steps, and chooses those that have lost
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
func (r *Reconciler) leave(ctx context.Context, observed *scalable.Observed) (time.Duration, error) {
	if observed.Stands() {
		r.stood.Store(observed.Name, observed.Now)
	}
	var errs []error
	var again time.Duration
	current, err := r.isCurrent(ctx, observed)
	if err != nil {
		return 0, err
	}
	for _, name := range slices.Sorted(maps.Keys(observed.Machines)) {
		machine := observed.Machines[name]
		if observed.Lost(machine) {
			errs = append(errs, ignoreConflict(client.IgnoreNotFound(scalable.Choose(ctx, r.clusters.Management.GetClient(), machine, observed.Now, true))))
		}
		if !scalable.Leaving(machine) {
			continue
		}
		if observed.Ending && !machine.DeletionTimestamp.IsZero() {
			// Cluster API drains nothing then, but waits for pre-terminate hooks all the same.
			errs = append(errs, client.IgnoreNotFound(r.letGo(ctx, machine)))
			continue
		}
		if !scalable.Chosen(machine) {
			errs = append(errs, ignoreConflict(client.IgnoreNotFound(r.chooseDeleted(ctx, observed, machine))))
			continue
		}
		ready := current && slices.Contains(observed.Plan.LetGo, machine.Name)
		if left := r.patienceLeft(observed, machine); !ready && left > 0 {
			again = requeue.Soonest(left, again)
			continue
		}
		errs = append(errs, client.IgnoreNotFound(r.letGo(ctx, machine)))
	}
	return again, errors.Join(errs...)
}

// leaveAlone lets the Machines go that Cluster API deletes for a rollout, or that others delete
// whose replicas a resource has. These replicas do not count the Machines any more, so nothing
// has to be lowered first: a Machine that is chosen, because its claim is drained or needs no
// drain, loses its hooks at once. Machines that nobody deletes stay as they are.
func (r *Reconciler) leaveAlone(ctx context.Context, observed *scalable.Observed) error {
	var errs []error
	for _, machine := range observed.Machines {
		switch {
		case machine.DeletionTimestamp.IsZero():
		case scalable.Chosen(machine):
			errs = append(errs, client.IgnoreNotFound(r.letGo(ctx, machine)))
		default:
			errs = append(errs, ignoreConflict(client.IgnoreNotFound(r.chooseDeleted(ctx, observed, machine))))
		}
	}
	return errors.Join(errs...)
}

// patienceLeft returns for how long a chosen Machine still waits. It counts from when this
// process last saw that Cluster API did not work on the resource; after a restart that is
// forgotten, and a Machine may be created in vain.
func (r *Reconciler) patienceLeft(observed *scalable.Observed, machine *clusterv1.Machine) time.Duration {
	since := scalable.LeavingSince(machine, observed.Now)
	if stood, found := r.stood.Load(observed.Name); found && stood.(time.Time).After(since) {
		since = stood.(time.Time)
	}
	return patience - observed.Now.Sub(since)
}

// isCurrent tells whether replicas are as they were when it was decided which Machines
// are let go. If they were raised since, these Machines may be counted, and would be
// replaced; the event of that brings the next reconcile.
func (r *Reconciler) isCurrent(ctx context.Context, observed *scalable.Observed) (bool, error) {
	toDo := slices.ContainsFunc(observed.Plan.LetGo, func(name string) bool {
		machine := observed.Machines[name]
		return machine.DeletionTimestamp.IsZero() || scalable.HeldUp(machine)
	})
	if observed.Resource == nil || !toDo {
		return true, nil
	}
	return observed.Resource.IsCurrent(ctx, r.clusters)
}

// chooseDeleted chooses a Machine that somebody else deletes and that waits with its
// hook, unless Karpenter will drain its Node.
func (r *Reconciler) chooseDeleted(ctx context.Context, observed *scalable.Observed, machine *clusterv1.Machine) error {
	if !scalable.HeldUp(machine) {
		return nil
	}
	claim, found := lo.Find(observed.Claims, func(claim karpv1.NodeClaim) bool { return claim.UID == scalable.ClaimUID(machine) })
	if found && claim.StatusConditions().Get(karpv1.ConditionTypeRegistered).IsTrue() && claim.Status.ProviderID == machine.Spec.ProviderID {
		return nil
	}
	if !found {
		if serves, err := r.servesAfterAll(ctx, observed, machine); err != nil || serves {
			return err
		}
	}
	return scalable.Choose(ctx, r.clusters.Management.GetClient(), machine, observed.Now, false)
}

// letGo deletes the Machine, and takes its hooks away: afterwards, for a MachineSet
// puts the hook back on Machines that are not being deleted.
func (r *Reconciler) letGo(ctx context.Context, machine *clusterv1.Machine) error {
	management := r.clusters.Management.GetClient()
	if machine.DeletionTimestamp.IsZero() {
		if err := management.Delete(ctx, machine, client.Preconditions{UID: &machine.UID}); err != nil {
			return fmt.Errorf("deleting Machine %s: %w", client.ObjectKeyFromObject(machine), err)
		}
		log.FromContext(ctx).Info("deleted Machine", "Machine", client.ObjectKeyFromObject(machine))
	}
	return scalable.Free(ctx, management, machine)
}
