// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// startLinks starts to write the links of the plan, several at once, and does not wait for them. A
// reconciler without a writer writes them one after the other. It then returns the claims whose state
// differs from the plan because a link could not be written: the claim of that link, and the claim
// that another writer has linked the Machine to. The plan for other claims does not depend on these
// links.
func (r *Reconciler) startLinks(ctx context.Context, snap *snapshot.Snapshot) (sets.Set[types.UID], error) {
	left := sets.New[types.UID]()
	var errs []error
	name, labels := snap.Name, scalable.LinkLabels(snap.Resource)
	for _, link := range snap.Plan.Links {
		if r.writer != nil {
			left.Insert(link.Claim.UID)
			// A copy, because the writer would keep all Machines of the snapshot in memory.
			machine := snap.Machines[link.Machine].DeepCopy()
			r.writer.start(ctx, name, link.Claim.UID, machine.UID, func(ctx context.Context) error {
				_, _, err := r.tryLink(ctx, name, labels, machine, link.Claim)
				if err != nil {
					log.FromContext(ctx).Error(err, "cannot link Machine", "Machine", client.ObjectKeyFromObject(machine), "NodeClaim", link.Claim.Name)
				}
				return err
			})
			continue
		}
		linked, other, err := r.tryLink(ctx, name, labels, snap.Machines[link.Machine], link.Claim)
		if linked != nil {
			snap.SetLinked(linked)
			continue
		}
		left.Insert(link.Claim.UID, other)
		errs = append(errs, err)
	}
	return left, errors.Join(errs...)
}

// tryLink writes a link and returns the linked Machine. If the link could not be written, it returns
// the claim that the Machine is linked to instead, if any.
func (r *Reconciler) tryLink(ctx context.Context, resource string, labels map[string]string, machine *clusterv1.Machine, to planner.Claim) (linked *clusterv1.Machine, other types.UID, err error) {
	if linked, err = r.writeLink(ctx, labels, machine, to); linked != nil {
		r.recent.add(resource, linked)
		return linked, "", nil
	}
	return nil, r.claimOf(ctx, resource, machine), err
}

// claimOf returns the claim that a Machine is linked to according to the API server. It is called
// after a link could not be written: the cache may lack the write of another writer, and the API
// server may have applied a write that it answered with an error.
func (r *Reconciler) claimOf(ctx context.Context, resource string, machine *clusterv1.Machine) types.UID {
	live, err := readMachine(ctx, r.clusters.Management.GetAPIReader(), machine)
	switch {
	case err != nil:
		r.recent.doubt(resource, machine) // it is read again before the next decision
		return ""
	case live == nil:
		return ""
	}
	r.recent.add(resource, live)
	return lifecycle.ClaimUID(live)
}

// writeLink writes a link, and the given labels, and returns the linked Machine. It returns nil after
// an error, or if the Machine or the claim has changed.
//
// It reads the claim from the API server, once in the life of a claim: a claim ends when
// CloudProvider.Delete finds no Machine, and a link must not be written after that.
func (r *Reconciler) writeLink(ctx context.Context, labels map[string]string, machine *clusterv1.Machine, to planner.Claim) (*clusterv1.Machine, error) {
	claim := &karpv1.NodeClaim{}
	if err := r.clusters.Workload.GetAPIReader().Get(ctx, types.NamespacedName{Name: to.Name}, claim); err != nil {
		return nil, client.IgnoreNotFound(fmt.Errorf("getting NodeClaim %s: %w", to.Name, err))
	}
	if claim.UID != to.UID || !claim.DeletionTimestamp.IsZero() || hasOther(claim, machine) {
		return nil, nil
	}
	linked, err := lifecycle.Link(ctx, r.clusters.Management.GetClient(), machine, claim, labels)
	if err != nil {
		return nil, requeue.IgnoreChanged(err)
	}
	log.FromContext(ctx).Info("linked Machine to NodeClaim", "Machine", client.ObjectKeyFromObject(machine), "NodeClaim", to.Name)
	return linked, nil
}

// hasOther reports whether a claim has a Node that is not the Machine's. CloudProvider.Delete relies
// on it: a registered claim is linked to no second Machine.
func hasOther(claim *karpv1.NodeClaim, machine *clusterv1.Machine) bool {
	return claim.StatusConditions().Get(karpv1.ConditionTypeRegistered).IsTrue() && claim.Status.ProviderID != machine.Spec.ProviderID
}
