// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// offeringRemoved tells that a claim is deleted because its template changed.
func offeringRemoved(claim *karpv1.NodeClaim, reason error) events.Event {
	return events.Event{
		InvolvedObject: claim,
		Type:           corev1.EventTypeWarning,
		Reason:         "OfferingRemoved",
		Message:        fmt.Sprintf("Deleted before it got a Machine, so that Karpenter chooses another offering: %s", reason),
		DedupeValues:   []string{string(claim.UID)},
	}
}

// notGenerated reports on a claim that its scalable resource could not be created.
func notGenerated(claim *karpv1.NodeClaim, resource *scalable.Resource, err error) events.Event {
	kind := string(resource.Kind().Name())
	return events.Event{
		InvolvedObject: claim,
		Type:           corev1.EventTypeWarning,
		Reason:         kind + "NotCreated",
		Message:        fmt.Sprintf("The %s for this NodeClaim could not be created, and is tried again: %s", kind, err),
		DedupeValues:   []string{string(claim.UID)},
	}
}

// surplusMachine tells on an adopted resource that its replicas are put back.
func surplusMachine(resource *scalable.Resource, machine *clusterv1.Machine) events.Event {
	return events.Event{
		InvolvedObject: resource.API(),
		Type:           corev1.EventTypeWarning,
		Reason:         "ReplicasReset",
		Message: fmt.Sprintf("Machine %s serves no NodeClaim and is more than the %s Machines of its own that this %s has, so it goes: to keep more, change the annotation %s",
			machine.Name, resource.GetAnnotations()[v1alpha1.UnmanagedReplicasAnnotation], resource.Kind().Name(), v1alpha1.UnmanagedReplicasAnnotation),
		DedupeValues: []string{string(machine.UID)},
	}
}
