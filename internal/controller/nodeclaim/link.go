// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// link writes the links of the plan on the Machines. It returns false if a Machine
// is not what it was: the plan was made from a cache that is behind, and nothing
// else is to be concluded from it.
func (r *Reconciler) link(ctx context.Context, observed *scalable.Observed) (bool, error) {
	if r.behind(observed) {
		return false, nil
	}
	current := true
	written := map[types.UID]string{}
	var errs []error
	for _, link := range observed.Plan.Links {
		machine := observed.Machines[link.Machine]
		linked := machine.DeepCopy()
		linked.Labels = lo.Assign(linked.Labels, map[string]string{v1alpha1.NodeClaimUIDLabel: string(link.Claim.UID)})
		linked.Annotations = lo.Assign(linked.Annotations, map[string]string{v1alpha1.NodeClaimAnnotation: link.Claim.Name})
		delete(linked.Annotations, v1alpha1.SpareSinceAnnotation)
		err := r.clusters.Management.GetClient().Patch(ctx, linked, client.MergeFromWithOptions(machine, client.MergeFromWithOptimisticLock{}))
		switch {
		case err == nil:
			written[machine.UID] = machine.ResourceVersion
			observed.Machines[link.Machine] = linked
			log.FromContext(ctx).Info("linked Machine to NodeClaim", "Machine", client.ObjectKeyFromObject(machine), "NodeClaim", link.Claim.Name)
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			current = false
		default:
			delete(observed.Plan.Served, link.Claim.UID)
			errs = append(errs, fmt.Errorf("linking Machine %s to NodeClaim %s: %w", client.ObjectKeyFromObject(machine), link.Claim.Name, err))
		}
	}
	if len(written) > 0 {
		r.written.Store(observed.Name, written)
	}
	return current, errors.Join(errs...)
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
