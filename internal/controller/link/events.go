// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// machineLinked reports on a claim which Machine it has got. A crash after the write of the link costs the event.
func machineLinked(claim *karpv1.NodeClaim, machine *clusterv1.Machine) events.Event {
	return events.Event{
		InvolvedObject: claim,
		Type:           corev1.EventTypeNormal,
		Reason:         v1alpha1.ReasonMachineLinked,
		Message:        fmt.Sprintf("Machine %s serves this NodeClaim", client.ObjectKeyFromObject(machine)),
		DedupeValues:   []string{string(claim.UID), string(machine.UID)},
	}
}
