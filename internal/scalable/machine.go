// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// ClaimUID returns the UID of the claim a Machine is linked to; empty without a link.
func ClaimUID(machine *clusterv1.Machine) types.UID {
	return types.UID(machine.Labels[v1alpha1.NodeClaimUIDLabel])
}

// IsMarked tells whether this operator chose a Machine to go.
func IsMarked(machine *clusterv1.Machine) bool {
	_, chosen := machine.Annotations[v1alpha1.MarkedForDeletionAtAnnotation]
	return chosen
}

// IsLeaving tells whether a Machine is being deleted or was chosen to go.
func IsLeaving(machine *clusterv1.Machine) bool {
	return !machine.DeletionTimestamp.IsZero() || IsMarked(machine)
}

// HasNode tells whether a Machine has become a Node.
func HasNode(machine *clusterv1.Machine) bool {
	return machine.Status.NodeRef.IsDefined()
}

// Mark marks a Machine as one that goes. It is the first step of every removal:
// from now on the Machine counts as leaving and is never linked, a MachineSet that
// scales down takes it and no other (core/reconcilers/machineset/
// machineset_deletion_order.go), and replicas follow. The reconciler of scalable
// resources deletes it once the MachineSet has the lower number, so that it is not
// replaced however fast it goes. What does that for a MachinePool is in
// docs/design/machinepools.md.
//
// With drained, Cluster API does not drain the Node nor wait for its volumes:
// Karpenter has done that, with its own rules, or there is nothing to drain. If the
// Machine has changed since it was read, for example because another claim was
// linked to it, nothing happens and a conflict is returned.
func Mark(ctx context.Context, management client.Client, machine *clusterv1.Machine, now time.Time, drained bool) error {
	if IsMarked(machine) {
		return nil
	}
	chosen := machine.DeepCopy()
	chosen.Annotations = lo.Assign(chosen.Annotations, map[string]string{
		v1alpha1.MarkedForDeletionAtAnnotation: Timestamp(now),
		clusterv1.DeleteMachineAnnotation:      "",
	})
	if drained {
		chosen.Annotations[clusterv1.ExcludeNodeDrainingAnnotation] = ""
		chosen.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation] = ""
	}
	machineKind(machine).hold(chosen)
	if err := management.Patch(ctx, chosen, client.MergeFromWithOptions(machine, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("choosing Machine %s to go: %w", client.ObjectKeyFromObject(machine), err)
	}
	return nil
}

// Linked returns a Machine as the one of a claim. It waits with a hook until Karpenter
// has drained its Node, as Machines of generated MachineDeployments do from the start.
// One of an adopted resource also gets the labels that generated ones have from their
// template.
func Linked(machine *clusterv1.Machine, resource *Resource, claim *karpv1.NodeClaim) *clusterv1.Machine {
	linked := machine.DeepCopy()
	linked.Labels = lo.Assign(linked.Labels, map[string]string{v1alpha1.NodeClaimUIDLabel: string(claim.UID)})
	linked.Annotations = lo.Assign(linked.Annotations, map[string]string{
		v1alpha1.NodeClaimAnnotation: claim.Name,
		v1alpha1.DrainHookAnnotation: "",
	})
	delete(linked.Annotations, v1alpha1.SpareSinceAnnotation)
	if resource != nil && Adopted(resource) {
		linked.Labels = lo.Assign(linked.Labels, offeringLabels(resource.GetLabels()[v1alpha1.TemplateLabel], OfferingOf(resource)))
	}
	machineKind(machine).hold(linked)
	return linked
}

// Unlink removes the link of a Machine that has not become a Node, so that it is
// spare and the next claim can have it. If the Machine has changed since it was
// read, nothing happens and a conflict is returned.
func Unlink(ctx context.Context, management client.Client, machine *clusterv1.Machine, now time.Time) error {
	released := machine.DeepCopy()
	delete(released.Labels, v1alpha1.NodeClaimUIDLabel)
	delete(released.Annotations, v1alpha1.NodeClaimAnnotation)
	released.Annotations = lo.Assign(released.Annotations, map[string]string{v1alpha1.SpareSinceAnnotation: Timestamp(now)})
	if err := management.Patch(ctx, released, client.MergeFromWithOptions(machine, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("releasing Machine %s: %w", client.ObjectKeyFromObject(machine), err)
	}
	return nil
}

// HoldsInstance tells whether a hook of ours keeps the instance of a Machine.
func HoldsInstance(machine *clusterv1.Machine) bool {
	_, holds := machine.Annotations[v1alpha1.TerminateHookAnnotation]
	return holds
}

// WaitsForHook tells whether a Machine that is deleted waits for us, by a hook.
func WaitsForHook(machine *clusterv1.Machine) bool {
	_, drain := machine.Annotations[v1alpha1.DrainHookAnnotation]
	return drain && HasNode(machine) || HoldsInstance(machine)
}

// RemoveHooks takes a Machine's hooks away, so that it goes if it is deleted.
func RemoveHooks(ctx context.Context, management client.Client, machine *clusterv1.Machine) error {
	free := machine.DeepCopy()
	delete(free.Annotations, v1alpha1.DrainHookAnnotation)
	delete(free.Annotations, v1alpha1.TerminateHookAnnotation)
	if len(free.Annotations) == len(machine.Annotations) {
		return nil
	}
	if err := management.Patch(ctx, free, client.MergeFrom(machine)); err != nil {
		return fmt.Errorf("removing the hooks of Machine %s: %w", client.ObjectKeyFromObject(machine), err)
	}
	return nil
}

// LeavingSince returns when a Machine began to leave; not before now if somebody
// has edited the time, until that is mended.
func LeavingSince(machine *clusterv1.Machine, now time.Time) time.Time {
	if since, err := time.Parse(time.RFC3339, machine.Annotations[v1alpha1.MarkedForDeletionAtAnnotation]); err == nil {
		return since
	}
	if !machine.DeletionTimestamp.IsZero() {
		return machine.DeletionTimestamp.Time
	}
	return now
}

// SpareSince returns since when a Machine without a link has been spare.
func SpareSince(machine *clusterv1.Machine) time.Time {
	if since, err := time.Parse(time.RFC3339, machine.Annotations[v1alpha1.SpareSinceAnnotation]); err == nil {
		return since
	}
	return machine.CreationTimestamp.Time
}

// Timestamp returns a time as the annotations of this operator have it.
func Timestamp(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}
