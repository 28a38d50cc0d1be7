// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// patience is for how long a chosen Machine waits for the MachineSet to have the
// lower number. That takes some two seconds, or until Cluster API has made the
// Machines that were asked for. If it cannot make them, nothing is gained by waiting.
const patience = 3 * time.Minute

// leave lets the leaving Machines go, in two steps.
//
// A Machine that somebody else deletes, by hand or by a health check, waits with
// its pre-drain hook until Karpenter has drained its Node: CloudProvider.Delete
// chooses it then. If no claim is there that Karpenter could drain it for, it is
// chosen at once, and Cluster API drains it.
//
// A chosen Machine is deleted, and its hook is taken away, when the MachineSet has so
// few replicas that it makes no other in its place. It returns after what time to
// look again; zero for no time.
func (r *Reconciler) leave(ctx context.Context, observed *scalable.Observed) (time.Duration, error) {
	var errs []error
	var again time.Duration
	ready := accountedFor(observed)
	for _, machine := range observed.Machines {
		if !scalable.Leaving(machine) {
			continue
		}
		if !scalable.Chosen(machine) {
			errs = append(errs, ignoreConflict(client.IgnoreNotFound(r.chooseDeleted(ctx, observed, machine))))
			continue
		}
		if left := patience - observed.Now.Sub(scalable.LeavingSince(machine, observed.Now)); !ready && left > 0 {
			again = max(left, again)
			continue
		}
		errs = append(errs, client.IgnoreNotFound(r.letGo(ctx, machine)))
	}
	return again, errors.Join(errs...)
}

// accountedFor tells whether the MachineSet has the replicas of the live Machines,
// and has acted on them.
func accountedFor(observed *scalable.Observed) bool {
	live := lo.CountBy(lo.Values(observed.Machines), func(machine *clusterv1.Machine) bool { return !scalable.Leaving(machine) })
	replicas := 0
	for i := range observed.MachineSets {
		set := &observed.MachineSets[i]
		if !set.DeletionTimestamp.IsZero() {
			continue
		}
		if set.Status.ObservedGeneration < set.Generation {
			return false
		}
		replicas += int(lo.FromPtr(set.Spec.Replicas))
	}
	return replicas <= live
}

// chooseDeleted chooses a Machine that somebody else deletes, if it has a Node that
// Karpenter will not drain.
func (r *Reconciler) chooseDeleted(ctx context.Context, observed *scalable.Observed, machine *clusterv1.Machine) error {
	if _, waits := machine.Annotations[v1alpha1.DrainHookAnnotation]; !waits || !scalable.Used(machine) {
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

// letGo deletes the Machine, and takes its hook away: afterwards, for a MachineSet
// puts the hook back on Machines that are not being deleted.
func (r *Reconciler) letGo(ctx context.Context, machine *clusterv1.Machine) error {
	management := r.clusters.Management.GetClient()
	if machine.DeletionTimestamp.IsZero() {
		if err := management.Delete(ctx, machine, client.Preconditions{UID: &machine.UID}); err != nil {
			return fmt.Errorf("deleting Machine %s: %w", client.ObjectKeyFromObject(machine), err)
		}
		log.FromContext(ctx).Info("deleted Machine", "Machine", client.ObjectKeyFromObject(machine))
	}
	if _, waits := machine.Annotations[v1alpha1.DrainHookAnnotation]; waits {
		free := machine.DeepCopy()
		delete(free.Annotations, v1alpha1.DrainHookAnnotation)
		if err := management.Patch(ctx, free, client.MergeFrom(machine)); err != nil {
			return fmt.Errorf("removing the drain hook of Machine %s: %w", client.ObjectKeyFromObject(machine), err)
		}
	}
	return nil
}
