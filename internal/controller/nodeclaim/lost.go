// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"errors"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// deleteLost deletes the claims whose Machine a user or another controller deletes, or whose Node or
// instance no longer exists. Karpenter then drains the Node by its own rules, unless CloudProvider.Get
// returns that its instance does not exist, and calls CloudProvider.Delete.
func (r *Reconciler) deleteLost(ctx context.Context, snap *snapshot.Snapshot) error {
	var errs []error
	for i := range snap.Claims {
		claim := &snap.Claims[i]
		if reason := lost(claim, snap); reason != "" {
			r.recorder.Publish(machineLost(claim, reason))
			errs = append(errs, r.deleteClaim(ctx, claim, reason))
		}
	}
	return errors.Join(errs...)
}

// lost returns why a registered claim must be deleted: a user or a health check deletes its
// Machine, its instance no longer exists, or its Node was removed by force, which Karpenter has
// not noticed. It is empty if there is no such reason.
//
// The Machine of a registered claim is the one whose Node core has registered. While it was being
// deleted, the claim may have got a second Machine with another provider ID: core writes that a claim
// is registered without a precondition (karpenter: pkg/controllers/nodeclaim/lifecycle/controller.go).
// Core registers only one Node for a claim, so such a claim must end, too.
func lost(claim *karpv1.NodeClaim, snap *snapshot.Snapshot) string {
	if !claim.DeletionTimestamp.IsZero() || !operator.ConditionOf(claim, karpv1.ConditionTypeRegistered).IsTrue() {
		return ""
	}
	for _, machine := range snap.LinkedTo(claim.UID) {
		node := machine.Status.NodeRef.Name
		registered := node != "" && node == claim.Status.NodeName
		// clusterctl deletes the copy of a Machine that it has moved, and the Node stays.
		if machine.Spec.ProviderID != claim.Status.ProviderID && !registered || lifecycle.IsMoved(machine) {
			continue
		}
		if !machine.DeletionTimestamp.IsZero() {
			return fmt.Sprintf("Machine %s is being deleted", machine.Name)
		}
		if node != "" && claim.Status.NodeName != "" && !registered {
			return fmt.Sprintf("its Node %s is not the one of Machine %s, which is %s", claim.Status.NodeName, machine.Name, node)
		}
		if healthy := conditions.Get(machine, clusterv1.MachineNodeHealthyCondition); healthy != nil && healthy.Reason == clusterv1.MachineNodeDeletedReason {
			return fmt.Sprintf("the Node of Machine %s has been removed", machine.Name)
		}
		if gone := failure.InstanceGone(machine); gone != "" {
			return fmt.Sprintf("the instance of Machine %s no longer exists: %s", machine.Name, gone)
		}
	}
	return ""
}

// deleteClaim deletes a claim, and never another one of the same name.
func (r *Reconciler) deleteClaim(ctx context.Context, claim *karpv1.NodeClaim, reason string) error {
	err := r.clusters.Workload.GetClient().Delete(ctx, claim, client.Preconditions{UID: &claim.UID})
	if requeue.IsChanged(err) {
		return nil // it no longer exists, or another claim has its name
	}
	if err != nil {
		return fmt.Errorf("deleting NodeClaim %s: %w", claim.Name, err)
	}
	log.FromContext(ctx).Info("deleted NodeClaim", "NodeClaim", claim.Name, "reason", reason)
	return nil
}
