// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/link"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// link writes the links of the plan on the Machines. It returns false if a Machine
// or a claim is not what it was: the plan was made from a cache that is behind, and
// nothing else is to be concluded from it.
func (r *Reconciler) link(ctx context.Context, observed *scalable.Observed) (bool, error) {
	if r.behind(observed) {
		return false, nil
	}
	written := map[types.UID]string{}
	current := true
	var errs []error
	for _, link := range observed.Plan.Links {
		machine := observed.Machines[link.Machine]
		linked, err := r.linkOne(ctx, observed, machine, link.Claim)
		if linked == nil {
			current = false
			errs = append(errs, err)
			continue
		}
		written[machine.UID] = machine.ResourceVersion
		observed.Machines[machine.Name] = linked
	}
	if len(written) > 0 {
		r.written.Store(observed.Name, written)
	}
	return current, errors.Join(errs...)
}

// linkOne writes a link and returns the Machine with it; nil if there was an error,
// or Machine or claim are not what they were.
//
// The API server is asked for the claim, once in its life: CloudProvider.Delete
// finds no Machine and lets a claim go, and a link must not come after that.
func (r *Reconciler) linkOne(ctx context.Context, observed *scalable.Observed, machine *clusterv1.Machine, to link.Claim) (*clusterv1.Machine, error) {
	claim := &karpv1.NodeClaim{}
	if err := r.clusters.Workload.GetAPIReader().Get(ctx, types.NamespacedName{Name: to.Name}, claim); err != nil {
		return nil, client.IgnoreNotFound(fmt.Errorf("getting NodeClaim %s: %w", to.Name, err))
	}
	if claim.UID != to.UID || !claim.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	linked := scalable.Linked(machine, observed.Resource, claim)
	err := r.clusters.Management.GetClient().Patch(ctx, linked, client.MergeFromWithOptions(machine, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("linking Machine %s to NodeClaim %s: %w", client.ObjectKeyFromObject(machine), to.Name, err)
	}
	log.FromContext(ctx).Info("linked Machine to NodeClaim", "Machine", client.ObjectKeyFromObject(machine), "NodeClaim", to.Name)
	return linked, nil
}

// behind tells whether the cache still lacks a link that was written here: then a
// claim that has its Machine seems to wait, and could be given another one. That
// would be undone, but a Machine made in vain. The event of the write brings the
// next reconcile. Only the version that each link was written on is remembered; a
// process that starts anew has caches that are filled anew.
func (r *Reconciler) behind(observed *scalable.Observed) bool {
	written, found := r.written.Load(observed.Name)
	if !found {
		return false
	}
	for _, machine := range observed.Machines {
		if written.(map[types.UID]string)[machine.UID] == machine.ResourceVersion {
			return true
		}
	}
	r.written.Delete(observed.Name)
	return false
}
