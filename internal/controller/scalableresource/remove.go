// SPDX-License-Identifier: Apache-2.0

package scalableresource

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

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// remove deletes the Machines that are to go: those of the plan, and those that
// were chosen before but are not being deleted yet.
func (r *Reconciler) remove(ctx context.Context, observed *scalable.Observed) error {
	var errs []error
	for _, name := range observed.Plan.Removals {
		machine := observed.Machines[name]
		serves, err := r.servesAfterAll(ctx, observed, machine)
		if err != nil || serves {
			errs = append(errs, err)
			continue
		}
		err = scalable.RemoveMachine(ctx, r.clusters.Management.GetClient(), machine, client.MergeFromWithOptimisticLock{})
		if err == nil {
			log.FromContext(ctx).Info("deleted Machine that serves no NodeClaim", "Machine", client.ObjectKeyFromObject(machine))
		}
		errs = append(errs, ignoreConflict(client.IgnoreNotFound(err)))
	}
	for _, machine := range observed.Machines {
		if scalable.Leaving(machine) {
			errs = append(errs, client.IgnoreNotFound(scalable.RemoveMachine(ctx, r.clusters.Management.GetClient(), machine)))
		}
	}
	return errors.Join(errs...)
}

// servesAfterAll asks the API server whether the claim of a Machine's link
// exists, though the cache does not have it. A Machine may hold Pods, so a cache
// is not enough to delete it; and the question is asked once for each Machine
// that goes this way.
//
// If the claim exists, the Machine goes only if it is the claim's second one: it
// is not the one the claim knows by provider ID, and the API server says that the
// other is linked to the claim and is to stay.
func (r *Reconciler) servesAfterAll(ctx context.Context, observed *scalable.Observed, machine *clusterv1.Machine) (bool, error) {
	uid, name := scalable.ClaimUID(machine), machine.Annotations[v1alpha1.NodeClaimAnnotation]
	if uid == "" || name == "" {
		return false, nil
	}
	claim := &karpv1.NodeClaim{}
	if err := r.clusters.Workload.GetAPIReader().Get(ctx, types.NamespacedName{Name: name}, claim); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("getting NodeClaim %s of Machine %s: %w", name, client.ObjectKeyFromObject(machine), err)
	}
	if claim.UID != uid {
		return false, nil
	}
	other, served := observed.Plan.Served[uid]
	if !served || (machine.Spec.ProviderID != "" && machine.Spec.ProviderID == claim.Status.ProviderID) {
		return true, nil
	}
	first := &clusterv1.Machine{}
	if err := r.clusters.Management.GetAPIReader().Get(ctx, types.NamespacedName{Namespace: machine.Namespace, Name: other}, first); err != nil {
		return true, client.IgnoreNotFound(fmt.Errorf("getting Machine %s/%s of NodeClaim %s: %w", machine.Namespace, other, name, err))
	}
	return scalable.ClaimUID(first) != uid || scalable.Leaving(first), nil
}
