// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"
)

// offeringGone tells that a claim is deleted because its template changed.
func offeringGone(claim *karpv1.NodeClaim, reason error) events.Event {
	return events.Event{
		InvolvedObject: claim,
		Type:           corev1.EventTypeWarning,
		Reason:         "OfferingGone",
		Message:        fmt.Sprintf("Deleted before it got a Machine, so that Karpenter chooses another offering: %s", reason),
		DedupeValues:   []string{string(claim.UID)},
	}
}
