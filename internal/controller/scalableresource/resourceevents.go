// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// offeringRemoved reports on a claim that it is deleted because its template has changed.
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
		Message:        fmt.Sprintf("The %s for this NodeClaim could not be created, and the operator tries again in %s: %s", kind, createAgainAfter, err),
		DedupeValues:   []string{string(claim.UID)},
	}
}

// surplusMachine reports on an adopted resource that its replicas are reset.
func surplusMachine(resource *scalable.Resource, machine *clusterv1.Machine) events.Event {
	return events.Event{
		InvolvedObject: resource.API(),
		Type:           corev1.EventTypeWarning,
		Reason:         "ReplicasReset",
		Message: fmt.Sprintf("The operator deletes Machine %s, because it serves no NodeClaim and this %s has more than its %s unmanaged replicas. To keep more Machines, raise the annotation %s.",
			machine.Name, resource.Kind().Name(), resource.GetAnnotations()[v1alpha1.UnmanagedReplicasAnnotation], v1alpha1.UnmanagedReplicasAnnotation),
		DedupeValues: []string{string(machine.UID)},
	}
}

// poolNotSettled reports on a MachinePool that it does not shrink, because disturbances of the management
// cluster follow each other.
func poolNotSettled(pool *scalable.Resource, cause string, limit time.Duration) events.Event {
	return events.Event{
		InvolvedObject: pool.API(),
		Type:           corev1.EventTypeWarning,
		Reason:         "ReplicasNotLowered",
		Message: fmt.Sprintf("Instances that nothing needs stay, because requests to the management cluster or its watches fail repeatedly, so the infrastructure provider may not have seen which Machines to remove: %s. Check the API server and what is in front of it; after %s of this the operator no longer waits.",
			cause, limit),
		DedupeValues: []string{string(pool.GetUID())},
	}
}
