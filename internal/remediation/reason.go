// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// suffix is what Announce adds to reasons. Logs of core and the message of the condition Rebooting have it, too.
const suffix = " (remediation)"

// Regular expressions of repair policies for the reasons of conditions.
const (
	// Announced matches the reasons with the suffix.
	Announced = ` \(remediation\)$`
	// NotAnnounced matches the others. Regular expressions of Go cannot exclude a text, so it excludes its last character.
	// Core's default policy applies to a reason that neither of them matches, which replaces the Node.
	NotAnnounced = `(^|[^)])$`
)

// Usable reports whether the machines of a template's Nodes can be restarted now. While the Cluster is paused or cannot be
// reached, nothing acts on requests.
func Usable(template *v1alpha1.KarpenterMachineTemplate) bool {
	conditions := template.StatusConditions(status.WithObservedOnly())
	return template.Spec.Remediation != nil && template.DeletionTimestamp.IsZero() &&
		conditions.Get(v1alpha1.ConditionRemediationReady).IsTrue() && !conditions.Get(v1alpha1.ConditionClusterReady).IsFalse()
}

// Announce changes the reasons of a Node's conditions so that the repair policies match which restart it.
func Announce(node *corev1.Node) {
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].Reason += suffix
	}
}
