// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

// Claim is what a rollout needs to know of a NodeClaim.
type Claim struct {
	Name    string
	UID     types.UID
	Created time.Time
	// Outdated reports whether the claim is not what the template generates now.
	Outdated bool
	// Ending reports whether the claim is being deleted.
	Ending bool
	// Healthy reports whether the Node is initialized and ready.
	Healthy bool
	// Failure describes what has failed, in a form that continues a sentence about the claim; empty if nothing has.
	Failure string
	// FailsAt is when the claim fails if nothing changes until then; zero if it does not.
	FailsAt time.Time
}

// Observed is what else is known of a claim.
type Observed struct {
	// Outdated reports whether the claim is not what the template generates now.
	Outdated bool
	// Unjoined reports whether the operator has found that no Node joins with the offering of the claim.
	Unjoined bool
	// Node is the Node of the claim; nil if it has none.
	Node *corev1.Node
}

// Observe returns what a rollout needs to know of a claim, which can be shared with the cache. Missing capacity, used-up
// quotas and interruptions are no failures: they have nothing to do with what the template generates.
func Observe(claim *karpv1.NodeClaim, observed Observed, spec *v1alpha1.Rollout, now time.Time) Claim {
	c := Claim{
		Name: claim.Name, UID: claim.UID, Created: claim.CreationTimestamp.Time,
		Outdated: observed.Outdated, Ending: !claim.DeletionTimestamp.IsZero(),
	}
	available, disrupted := nodeclaims.ConditionOf(claim, v1alpha1.ConditionMachineAvailable), nodeclaims.ConditionOf(claim, karpv1.ConditionTypeDisruptionReason)
	registered := nodeclaims.ConditionOf(claim, karpv1.ConditionTypeRegistered)
	switch {
	case available.IsFalse() && (available.Reason == v1alpha1.ReasonMachineFailed || available.Reason == v1alpha1.ReasonLaunchTimeout):
		c.Failure = fmt.Sprintf("could not be launched (%s): %s", available.Reason, available.Message)
	case nodeclaims.ConditionOf(claim, karpv1.ConditionTypeRebooting).IsTrue():
		c.Failure = "is restarted by node repair"
	case disrupted.IsTrue() && disrupted.Reason == string(karpv1.DisruptionReasonUnhealthy):
		c.Failure = "is replaced by node repair"
	case c.Ending && !registered.IsTrue() && observed.Unjoined:
		c.Failure = "was deleted because its Node has not joined"
	case !c.Ending && registered.IsTrue():
		problem, since := unreadyOf(claim, registered, observed.Node)
		if c.Healthy = problem == ""; !c.Healthy && !since.IsZero() {
			c.FailsAt = since.Add(seconds(spec.ProgressDeadlineSeconds, v1alpha1.DefaultProgressDeadline))
			if !now.Before(c.FailsAt) {
				c.Failure = fmt.Sprintf("%s since %s", problem, since.UTC().Format(time.RFC3339))
			}
		}
	}
	return c
}

// unreadyOf returns why the Node of a registered claim does not count as healthy, and since when; empty if it does. The time
// of a Node that does not exist is unknown: its claim ends.
func unreadyOf(claim *karpv1.NodeClaim, registered *status.Condition, node *corev1.Node) (string, time.Time) {
	if initialized := nodeclaims.ConditionOf(claim, karpv1.ConditionTypeInitialized); !initialized.IsTrue() {
		problem := "has a Node that is registered and not initialized"
		if initialized != nil && initialized.Message != "" {
			problem += " (" + initialized.Message + ")"
		}
		since := registered.LastTransitionTime.Time
		// Core initializes a Node again that it has restarted.
		if rebooted := nodeclaims.ConditionOf(claim, karpv1.ConditionTypeRebooting); rebooted != nil && rebooted.LastTransitionTime.After(since) {
			since = rebooted.LastTransitionTime.Time
		}
		return problem, since
	}
	if node == nil {
		return "has no Node", time.Time{}
	}
	if ready := nodeutils.GetCondition(node, corev1.NodeReady); ready.Type != "" && ready.Status != corev1.ConditionTrue {
		return fmt.Sprintf("has the Node %s, which is not ready (%s)", node.Name, ready.Reason), ready.LastTransitionTime.Time
	}
	return "", time.Time{}
}

// seconds returns a duration of the API, or its default.
func seconds(of *int32, otherwise time.Duration) time.Duration {
	if of == nil {
		return otherwise
	}
	return time.Duration(*of) * time.Second
}
