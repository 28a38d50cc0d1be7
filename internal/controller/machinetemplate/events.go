// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// statusNotWritten returns the event for a template whose status is out of date.
func statusNotWritten(template *v1alpha1.KarpenterMachineTemplate, err error) events.Event {
	return events.Event{
		InvolvedObject: template,
		Type:           corev1.EventTypeWarning,
		Reason:         "StatusNotWritten",
		Message:        fmt.Sprintf("The status is out of date because it cannot be written. If the template is too large, split it into several templates: %s", err),
		DedupeValues:   []string{string(template.UID)},
	}
}

// waitsForClaims returns the event for a template whose deletion waits for NodeClaims. It is repeated
// at most every 10 minutes.
func waitsForClaims(template *v1alpha1.KarpenterMachineTemplate, message string) events.Event {
	return events.Event{
		InvolvedObject: template,
		Type:           corev1.EventTypeNormal,
		Reason:         "WaitingOnNodeClaimTermination",
		Message:        message,
		DedupeValues:   []string{string(template.UID)},
		DedupeTimeout:  10 * time.Minute,
	}
}
