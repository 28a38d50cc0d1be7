// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// offeringUnavailable reports on the template that an offering is unavailable, until when, and why.
func offeringUnavailable(template *v1alpha1.KarpenterMachineTemplate, offering catalog.Key, failed *failure.Failure) events.Event {
	until := ""
	for _, mark := range template.Status.UnavailableOfferings {
		if catalog.KeyOfMark(mark) == offering {
			until = mark.Until.UTC().Format(" until 15:04 UTC")
		}
	}
	return events.Event{
		InvolvedObject: template,
		Type:           corev1.EventTypeWarning,
		Reason:         string(failed.Kind),
		Message:        fmt.Sprintf("Offering %s is unavailable%s: %s", offering, until, failed.Message),
		DedupeValues:   []string{string(template.UID), offering.String()},
	}
}

// next describes what happens to a claim whose machine could not be launched.
func next(claim *karpv1.NodeClaim) string {
	if _, pooled := claim.Labels[karpv1.NodePoolLabelKey]; pooled {
		return "Karpenter chooses another"
	}
	return "it is deleted, and nothing replaces it, because it has no NodePool"
}

// claimFailed reports on a claim why its machine could not be launched.
func claimFailed(claim *karpv1.NodeClaim, offering catalog.Key, failed *failure.Failure) events.Event {
	return events.Event{
		InvolvedObject: claim,
		Type:           corev1.EventTypeWarning,
		Reason:         string(failed.Kind),
		Message:        fmt.Sprintf("No machine could be launched with offering %s, so %s: %s", offering, next(claim), failed.Message),
		DedupeValues:   []string{string(claim.UID)},
	}
}

// podWaits reports on a Pod why it still waits.
func podWaits(pod types.NamespacedName, claim *karpv1.NodeClaim, offering catalog.Key, failed *failure.Failure) events.Event {
	return events.Event{
		InvolvedObject: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}},
		Type:           corev1.EventTypeWarning,
		Reason:         string(failed.Kind),
		Message:        fmt.Sprintf("No machine could be launched for NodeClaim %s with offering %s, so %s: %s", claim.Name, offering, next(claim), failed.Message),
		DedupeValues:   []string{pod.String(), string(claim.UID)},
	}
}

// claimWaits reports on a claim why Cluster API creates no Machine for it.
func claimWaits(claim *karpv1.NodeClaim, stall planner.Stall) events.Event {
	return events.Event{
		InvolvedObject: claim,
		Type:           corev1.EventTypeWarning,
		Reason:         stall.Reason,
		Message:        "The NodeClaim waits for Cluster API: " + stall.Message,
		DedupeValues:   []string{string(claim.UID), stall.Message},
	}
}

// podWaitsForClusterAPI reports the same on a Pod.
func podWaitsForClusterAPI(pod types.NamespacedName, claim *karpv1.NodeClaim, stall planner.Stall) events.Event {
	return events.Event{
		InvolvedObject: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}},
		Type:           corev1.EventTypeWarning,
		Reason:         stall.Reason,
		Message:        fmt.Sprintf("NodeClaim %s waits for Cluster API: %s", claim.Name, stall.Message),
		DedupeValues:   []string{pod.String(), string(claim.UID), stall.Message},
	}
}

// clusterDeleting reports on a claim that it is deleted because it can get no Machine.
func clusterDeleting(claim *karpv1.NodeClaim, reason string) events.Event {
	return events.Event{
		InvolvedObject: claim,
		Type:           corev1.EventTypeWarning,
		Reason:         v1alpha1.ReasonClusterDeleting,
		Message:        fmt.Sprintf("Deleted because it has no Machine and cannot get one: %s", reason),
		DedupeValues:   []string{string(claim.UID)},
	}
}

// machineLost reports on a claim that it is deleted with its Machine.
func machineLost(claim *karpv1.NodeClaim, reason string) events.Event {
	return events.Event{
		InvolvedObject: claim,
		Type:           corev1.EventTypeWarning,
		Reason:         "MachineLost",
		Message:        fmt.Sprintf("Deleted, so that Karpenter drains its Node and replaces it: %s", reason),
		DedupeValues:   []string{string(claim.UID)},
	}
}
