// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
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

// writeLinks writes the links of the plan on the Machines, several at once. It returns the claims whose
// state differs from the plan because a link could not be written: the claim of that link, and the
// claim that another writer has linked the Machine to. The plan for other claims does not depend on
// these links.
func (r *Reconciler) writeLinks(ctx context.Context, snap *snapshot.Snapshot) (sets.Set[types.UID], error) {
	var mu sync.Mutex
	var errs []error
	uncertain := sets.New[types.UID]()
	write := func(link planner.Link, machine *clusterv1.Machine) {
		linked, err := r.writeLink(ctx, snap, machine, link.Claim)
		other := types.UID("")
		if linked != nil {
			r.recent.add(snap.Name, linked)
		} else {
			other = r.claimOf(ctx, snap.Name, machine)
		}
		mu.Lock()
		defer mu.Unlock()
		if linked != nil {
			snap.SetLinked(linked)
			return
		}
		uncertain.Insert(link.Claim.UID, other)
		errs = append(errs, err)
	}
	group := errgroup.Group{}
	group.SetLimit(r.LinkWriters)
	for _, link := range snap.Plan.Links {
		machine := snap.Machines[link.Machine]
		if r.LinkWriters == 1 {
			write(link, machine)
			continue
		}
		group.Go(func() error { write(link, machine); return nil })
	}
	return uncertain, errors.Join(group.Wait(), errors.Join(errs...))
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

// writeLink writes a link and returns the linked Machine. It returns nil after an error, or if the
// Machine or the claim has changed.
//
// It reads the claim from the API server, once in the life of a claim: a claim ends when
// CloudProvider.Delete finds no Machine, and a link must not be written after that.
func (r *Reconciler) writeLink(ctx context.Context, snap *snapshot.Snapshot, machine *clusterv1.Machine, to planner.Claim) (*clusterv1.Machine, error) {
	claim := &karpv1.NodeClaim{}
	if err := r.clusters.Workload.GetAPIReader().Get(ctx, types.NamespacedName{Name: to.Name}, claim); err != nil {
		return nil, client.IgnoreNotFound(fmt.Errorf("getting NodeClaim %s: %w", to.Name, err))
	}
	if claim.UID != to.UID || !claim.DeletionTimestamp.IsZero() || hasOther(claim, machine) {
		return nil, nil
	}
	linked, err := lifecycle.Link(ctx, r.clusters.Management.GetClient(), machine, claim, scalable.LinkLabels(snap.Resource))
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
