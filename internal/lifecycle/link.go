// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// ClaimUID returns the UID of the claim that a Machine is linked to; empty without a link.
func ClaimUID(machine metav1.Object) types.UID {
	return types.UID(machine.GetLabels()[v1alpha1.NodeClaimUIDLabel])
}

// ClaimName returns the name of the claim that a Machine is linked to; empty without a link.
func ClaimName(machine *clusterv1.Machine) string {
	return machine.Annotations[v1alpha1.NodeClaimAnnotation]
}

// LinkedTo selects the Machines that are linked to a claim.
func LinkedTo(claim types.UID) client.ListOption {
	return client.MatchingLabels{v1alpha1.NodeClaimUIDLabel: string(claim)}
}

// LinkedToAny selects the Machines that are linked to a claim, whichever that is.
func LinkedToAny() client.ListOption { return client.HasLabels{v1alpha1.NodeClaimUIDLabel} }

// Link links a Machine to a claim and returns it as the API server has it. If a user
// or a health check deletes the Machine, it waits with the pre-drain hook until Karpenter has drained
// its Node. The hook is not in the template of a MachineDeployment: a MachineSet would put it back
// after Mark has removed it. The Machine also gets the given labels: one of an adopted
// MachineDeployment needs those that generated ones have from their template.
//
// If the Machine was linked, marked, deleted or created again since it was read, nothing is written
// and a conflict is returned. Other changes do not matter.
func Link(ctx context.Context, management client.Client, machine *clusterv1.Machine, claim *karpv1.NodeClaim, labels map[string]string) (*clusterv1.Machine, error) {
	linked := machine.DeepCopy()
	linked.Labels = lo.Assign(linked.Labels, labels, map[string]string{v1alpha1.NodeClaimUIDLabel: string(claim.UID)})
	linked.Annotations = lo.Assign(linked.Annotations, map[string]string{
		v1alpha1.NodeClaimAnnotation: claim.Name,
		v1alpha1.DrainHookAnnotation: "",
	})
	delete(linked.Annotations, v1alpha1.SpareSinceAnnotation)
	holdIfPooled(linked)
	if err := patch(ctx, management, machine, linked, "linking to NodeClaim "+claim.Name+" the", sameState(machine)...); err != nil {
		return nil, err
	}
	return linked, nil
}

// Unlink removes the link of a Machine that has no Node, so that it is spare and can serve the
// next claim. If it has a Node, or was unlinked, linked to another claim, marked or deleted since it
// was read, nothing is written and a conflict is returned.
func Unlink(ctx context.Context, management client.Client, machine *clusterv1.Machine, now time.Time) error {
	unlinked := machine.DeepCopy()
	delete(unlinked.Labels, v1alpha1.NodeClaimUIDLabel)
	delete(unlinked.Annotations, v1alpha1.NodeClaimAnnotation)
	unlinked.Annotations = lo.Assign(unlinked.Annotations, map[string]string{v1alpha1.SpareSinceAnnotation: timestamp.Format(now)})
	return patch(ctx, management, machine, unlinked, "unlinking", append(sameState(machine), noNode(machine))...)
}

// NoteSpare writes that a Machine with a Node that was never linked is spare from now on. If it was linked,
// marked or deleted since it was read, nothing is written and a conflict is returned.
func NoteSpare(ctx context.Context, management client.Client, machine *clusterv1.Machine, now time.Time) error {
	spare := machine.DeepCopy()
	spare.Annotations = lo.Assign(spare.Annotations, map[string]string{v1alpha1.SpareSinceAnnotation: timestamp.Format(now)})
	return patch(ctx, management, machine, spare, "writing since when it is spare on", sameState(machine)...)
}

// SpareSince returns since when a Machine without a link has been spare: since it was unlinked,
// or else since it was created.
func SpareSince(machine *clusterv1.Machine) time.Time {
	if since, known := timestamp.Of(machine, v1alpha1.SpareSinceAnnotation); known {
		return since
	}
	return machine.CreationTimestamp.Time
}

// HasSpareTime reports whether a Machine has the annotation spare-since. A Machine that was never
// linked lacks it until it is found with a Node.
func HasSpareTime(machine *clusterv1.Machine) bool {
	return machine.Annotations[v1alpha1.SpareSinceAnnotation] != ""
}

// HasNode reports whether a Machine has a Node.
func HasNode(machine *clusterv1.Machine) bool {
	return machine.Status.NodeRef.IsDefined()
}

// HasNodeOf reports whether a Machine has the Node that core has registered for a claim. That Node stays
// the same if a provider changes the provider ID of the Machine.
func HasNodeOf(machine *clusterv1.Machine, claim *karpv1.NodeClaim) bool {
	return HasNode(machine) && machine.Status.NodeRef.Name == claim.Status.NodeName
}

// HasIDOrNodeOf reports whether a Machine has the provider ID or the Node of a claim: a provider can change
// the ID of a Machine that has a Node.
func HasIDOrNodeOf(machine *clusterv1.Machine, claim *karpv1.NodeClaim) bool {
	return machine.Spec.ProviderID != "" && machine.Spec.ProviderID == claim.Status.ProviderID || HasNodeOf(machine, claim)
}
