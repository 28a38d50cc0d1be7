// SPDX-License-Identifier: Apache-2.0

package interruption

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
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

// offeringInterrupted reports on a template that an offering is unavailable.
func offeringInterrupted(template *v1alpha1.KarpenterMachineTemplate, mark v1alpha1.UnavailableOffering) events.Event {
	offering := catalog.Key{InstanceType: mark.InstanceType, Zone: mark.Zone, CapacityType: mark.CapacityType}
	return events.Event{
		InvolvedObject: template,
		Type:           corev1.EventTypeWarning,
		Reason:         v1alpha1.ReasonInterrupted,
		Message:        fmt.Sprintf("Offering %s is unavailable, because its capacity was taken away: %s", offering, mark.Message),
		DedupeValues:   []string{string(template.UID), offering.String()},
	}
}
