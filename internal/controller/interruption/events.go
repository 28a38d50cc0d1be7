// SPDX-License-Identifier: Apache-2.0

package interruption

import (
	"fmt"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// nodeInterrupted reports on a Node that it is replaced.
func nodeInterrupted(ends *interruptedNode) events.Event {
	return events.Event{
		InvolvedObject: ends.node,
		Type:           corev1.EventTypeWarning,
		Reason:         v1alpha1.ReasonInterrupted,
		Message:        fmt.Sprintf("NodeClaim %s is deleted, so that Karpenter drains this Node before its instance ends: it has the %s", ends.claim.Name, ends.signal),
		DedupeValues:   []string{string(ends.node.UID)},
	}
}

// claimInterrupted reports the same on the claim of the Node.
func claimInterrupted(ends *interruptedNode) events.Event {
	return events.Event{
		InvolvedObject: ends.claim,
		Type:           corev1.EventTypeWarning,
		Reason:         v1alpha1.ReasonInterrupted,
		Message:        fmt.Sprintf("Deleted, so that Karpenter drains Node %s before its instance ends: it has the %s", ends.node.Name, ends.signal),
		DedupeValues:   []string{string(ends.claim.UID)},
	}
}

// providerIDShared reports on a Node and on the claims with its provider ID that only one of them can be
// its claim; of is nil if no Machine shows which.
func providerIDShared(node *corev1.Node, of *karpv1.NodeClaim, sharing []karpv1.NodeClaim) []events.Event {
	names := strings.Join(lo.Map(sharing, func(claim karpv1.NodeClaim, _ int) string { return claim.Name }), ", ")
	message := fmt.Sprintf("NodeClaims %s have provider ID %s of Node %s, whose instance ends, and no Machine shows which of them is its NodeClaim. Delete all that have no Machine, and drain the Node", names, node.Spec.ProviderID, node.Name)
	if of != nil {
		message = fmt.Sprintf("NodeClaims %s have provider ID %s of Node %s, which is the Node of %s according to its Machine. Delete the others: Karpenter treats the Node as if it had no NodeClaim", names, node.Spec.ProviderID, node.Name, of.Name)
	}
	about := []client.Object{node.DeepCopy()}
	for i := range sharing {
		about = append(about, &sharing[i])
	}
	return lo.Map(about, func(object client.Object, _ int) events.Event {
		return events.Event{
			InvolvedObject: object,
			Type:           corev1.EventTypeWarning,
			Reason:         v1alpha1.ReasonProviderIDShared,
			Message:        message,
			DedupeValues:   []string{string(object.GetUID()), node.Spec.ProviderID},
		}
	})
}

// offeringInterrupted reports on a template that an offering is unavailable.
func offeringInterrupted(template *v1alpha1.KarpenterMachineTemplate, mark v1alpha1.UnavailableOffering) events.Event {
	offering := catalog.KeyOfMark(mark)
	return events.Event{
		InvolvedObject: template,
		Type:           corev1.EventTypeWarning,
		Reason:         v1alpha1.ReasonInterrupted,
		Message:        fmt.Sprintf("Offering %s is unavailable, because its capacity was taken away: %s", offering, mark.Message),
		DedupeValues:   []string{string(template.UID), offering.String()},
	}
}
