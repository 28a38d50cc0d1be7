// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/patrickmn/go-cache"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// quietManager is a manager whose event recorders publish neither what NodeClaims, Nodes and NodePools show themselves, nor
// the same event of a NodeClaim or Node repeatedly.
//
// For each NodeClaim and Node, core's status controllers publish an event for each condition that changes and each finalizer
// that is removed (operatorpkg: status/controller.go). These are most of the events in the life of a NodeClaim. They repeat
// what the object has, or had until it was deleted. Core reports failures, nominations and disruptions in other events.
// NodePools and KarpenterMachineTemplates are few, and keep theirs.
//
// Core repeats why it cannot disrupt a Node every 2 or 15 minutes (karpenter: disruption/events/events.go), which is the only
// work in a cluster that has settled.
type quietManager struct{ manager.Manager }

// GetEventRecorderFor returns a quiet recorder. Core's controllers, and operatorpkg, use no other kind.
func (m quietManager) GetEventRecorderFor(name string) record.EventRecorder {
	return quietRecorder{
		EventRecorder: m.Manager.GetEventRecorderFor(name), //nolint:staticcheck // operatorpkg accepts only this kind.
		published:     cache.New(repeatAfter, time.Minute),
	}
}

// repeatAfter is how long the same event is not published again. It is less than the hour for which API servers keep an
// event by default (kube-apiserver: --event-ttl), so the event of a state that lasts can always be read.
const repeatAfter = 50 * time.Minute

type quietRecorder struct {
	record.EventRecorder
	published *cache.Cache
}

// Event publishes an event, unless an object shows the same, or it was published a short time ago.
func (r quietRecorder) Event(object runtime.Object, kind, reason, message string) {
	if kind == corev1.EventTypeNormal && isMany(object) && (repeatsObject(reason, message) || r.repeatsEvent(object, reason, message)) {
		return
	}
	r.EventRecorder.Event(object, kind, reason, message)
}

// isMany reports whether an object is a NodeClaim or a Node.
func isMany(object runtime.Object) bool {
	switch object.(type) {
	case *karpv1.NodeClaim, *corev1.Node, *status.UnstructuredAdapter[*corev1.Node]:
		return true
	}
	return false
}

// repeatsObject reports whether an event is one of those that operatorpkg's status controllers publish, repeats the condition
// MachineReady, or says nothing
// but the consolidation policy of the NodePool (karpenter: disruption/consolidation.go, ShouldDisrupt).
func repeatsObject(reason, message string) bool {
	switch reason {
	case "Finalized", v1alpha1.ReasonProviderIDSet:
		return true
	case events.Unconsolidatable:
		return strings.Contains(message, "has consolidation policy WhenEmpty") || strings.Contains(message, "has consolidation disabled")
	}
	return strings.HasPrefix(message, "Status condition transitioned")
}

// repeatsEvent reports whether the last event of an object with this reason has the same message and was published a short
// time ago.
func (r quietRecorder) repeatsEvent(object runtime.Object, reason, message string) bool {
	of, err := meta.Accessor(object)
	if err != nil {
		return false
	}
	key := string(of.GetUID()) + " " + reason
	if last, found := r.published.Get(key); found && last == message {
		return true
	}
	r.published.SetDefault(key, message)
	return false
}
