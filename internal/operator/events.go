// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// quietManager is a manager whose event recorders do not publish what the NodeClaims and Nodes show themselves.
//
// For each of them, core's status controllers publish an event for each condition that changes and each finalizer that is
// removed (operatorpkg: status/controller.go). These are most of the events in the life of a NodeClaim. They repeat what
// the object has, or had until it was deleted. Core reports failures, nominations and disruptions in other events.
// NodePools and KarpenterMachineTemplates are few, and keep theirs.
type quietManager struct{ manager.Manager }

// GetEventRecorderFor returns a quiet recorder. Core's controllers, and operatorpkg, use no other kind.
func (m quietManager) GetEventRecorderFor(name string) record.EventRecorder {
	return quietRecorder{m.Manager.GetEventRecorderFor(name)} //nolint:staticcheck // operatorpkg accepts only this kind.
}

type quietRecorder struct{ record.EventRecorder }

// Event publishes an event, unless it repeats the status of a NodeClaim or Node.
func (r quietRecorder) Event(object runtime.Object, kind, reason, message string) {
	if kind == corev1.EventTypeNormal && isMany(object) && repeatsObject(reason, message) {
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

// repeatsObject reports whether an event is one of those that operatorpkg's status controllers publish.
func repeatsObject(reason, message string) bool {
	return reason == "Finalized" || strings.HasPrefix(message, "Status condition transitioned")
}
