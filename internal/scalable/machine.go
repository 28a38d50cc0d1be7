// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/link"
)

// ClaimUID returns the UID of the claim a Machine is linked to; empty without a link.
func ClaimUID(machine *clusterv1.Machine) types.UID {
	return types.UID(machine.Labels[v1alpha1.NodeClaimUIDLabel])
}

// Leaving tells whether a Machine is being deleted or was chosen to be.
func Leaving(machine *clusterv1.Machine) bool {
	return !machine.DeletionTimestamp.IsZero() ||
		machine.Annotations[clusterv1.DeleteMachineAnnotation] == v1alpha1.DeleteMachineValue
}

// machineForLink returns what a link decision needs to know of a Machine.
func machineForLink(machine *clusterv1.Machine) link.Machine {
	return link.Machine{
		Name:       machine.Name,
		Created:    machine.CreationTimestamp.Time,
		Claim:      ClaimUID(machine),
		ProviderID: machine.Spec.ProviderID,
		Leaving:    Leaving(machine),
		Used:       machine.Status.NodeRef.IsDefined(),
	}
}

// RemoveMachine deletes exactly this Machine. With client.MergeFromWithOptimisticLock
// it does so only in the state it was read in: if the Machine has changed since,
// for example because a claim was linked to it, nothing happens and a conflict is
// returned.
//
// It first marks the Machine as chosen, so that a MachineSet that scales down
// meanwhile takes this one and no other (core/reconcilers/machineset/
// machineset_deletion_order.go), and tells Cluster API not to drain it nor to
// wait for its volumes: Karpenter has done that, with its own rules, or there is
// nothing to drain. A chosen Machine is never linked, so it can be deleted then.
func RemoveMachine(ctx context.Context, management client.Client, machine *clusterv1.Machine, options ...client.MergeFromOption) error {
	if !machine.DeletionTimestamp.IsZero() {
		return nil
	}
	if !Leaving(machine) {
		chosen := machine.DeepCopy()
		chosen.Annotations = lo.Assign(chosen.Annotations, map[string]string{
			clusterv1.DeleteMachineAnnotation:                  v1alpha1.DeleteMachineValue,
			clusterv1.ExcludeNodeDrainingAnnotation:            "",
			clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation: "",
		})
		if err := management.Patch(ctx, chosen, client.MergeFromWithOptions(machine, options...)); err != nil {
			return fmt.Errorf("choosing Machine %s for deletion: %w", client.ObjectKeyFromObject(machine), err)
		}
	}
	if err := management.Delete(ctx, machine, client.Preconditions{UID: &machine.UID}); err != nil {
		return fmt.Errorf("deleting Machine %s: %w", client.ObjectKeyFromObject(machine), err)
	}
	return nil
}
