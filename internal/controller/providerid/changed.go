// SPDX-License-Identifier: Apache-2.0

package providerid

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

// report writes on a registered claim whether its Machine still has its provider ID. A provider can
// change the ID, and Cluster API copies it from the infrastructure object. Karpenter finds the Node,
// and drains it, only by the ID with which it was registered. Therefore the claim keeps that ID, and
// a user must remove the contradiction.
func (r *Reconciler) report(ctx context.Context, claim *karpv1.NodeClaim, machine *clusterv1.Machine) error {
	problem := ""
	if machine.Spec.ProviderID != claim.Status.ProviderID {
		problem = contradiction(claim, machine)
	}
	written, err := nodeclaims.ReportProviderID(ctx, r.clusters.Workload.GetClient(), claim, problem)
	if written && problem != "" {
		r.recorder.Publish(events.Event{
			InvolvedObject: claim,
			Type:           corev1.EventTypeWarning,
			Reason:         v1alpha1.ReasonProviderIDChanged,
			Message:        problem,
			DedupeValues:   []string{string(claim.UID), machine.Spec.ProviderID},
		})
	}
	return err
}

// providerIDSet reports on a claim that it has the provider ID of its Machine. The condition MachineReady shows the same, so it
// is only published with --all-events (package operator).
func providerIDSet(claim *karpv1.NodeClaim, machine string) events.Event {
	return events.Event{
		InvolvedObject: claim,
		Type:           corev1.EventTypeNormal,
		Reason:         v1alpha1.ReasonProviderIDSet,
		Message:        fmt.Sprintf("Machine %s has provider ID %s", machine, claim.Status.ProviderID),
		DedupeValues:   []string{string(claim.UID), claim.Status.ProviderID},
	}
}

// contradiction describes that a Machine has another provider ID than its claim, and what to do.
func contradiction(claim *karpv1.NodeClaim, machine *clusterv1.Machine) string {
	infrastructure := machine.Spec.InfrastructureRef
	return fmt.Sprintf("Machine %s has got provider ID %s, but Node %s of this NodeClaim was registered with %s, so Cluster API no longer finds the Node. Correct the provider ID of %s %s, or delete this NodeClaim to drain and replace its Node",
		client.ObjectKeyFromObject(machine), machine.Spec.ProviderID, claim.Status.NodeName, claim.Status.ProviderID, infrastructure.Kind, infrastructure.Name)
}
