// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"cmp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestInstanceGone(t *testing.T) {
	const deleted, unknown = "AWSMachine has been deleted while the Machine still exists", "NodeReadyUnknown"
	for name, test := range map[string]struct {
		infrastructure *metav1.Condition
		failure        string
		node           string // the reason of NodeReady; empty if there is no such condition
		want           string
		needsSilence   bool
	}{
		"the object was deleted":         {infrastructure: notReady(clusterv1.MachineInfrastructureDeletedReason, deleted), node: unknown, want: deleted},
		"the instance was terminated":    {infrastructure: notReady("InstanceTerminated", ""), node: unknown, want: "InstanceTerminated"},
		"the provider gave up":           {infrastructure: notReady("NotReady", ""), failure: "VM was deleted", node: "NodeNotReady", want: "VM was deleted", needsSilence: true},
		"a Node that is Ready":           {infrastructure: notReady(clusterv1.MachineInfrastructureDeletedReason, deleted), node: "NodeReady"},
		"gave up, and the Node is Ready": {infrastructure: notReady("NotReady", ""), failure: "identities are not ready", node: "NodeReady"},
		"no connection to the cluster":   {infrastructure: notReady(clusterv1.MachineInfrastructureDeletedReason, deleted), node: "ConnectionDown"},
		"a Node that was not read":       {infrastructure: notReady(clusterv1.MachineInfrastructureDeletedReason, deleted), node: "InternalError"},
		"no condition of the Node":       {infrastructure: notReady(clusterv1.MachineInfrastructureDeletedReason, deleted)},
		"no condition of the machine":    {failure: "VM was deleted", node: unknown},
		"an instance that is stopped":    {infrastructure: notReady("InstanceStopped", ""), node: unknown},
		"a provider that does not know":  {infrastructure: &metav1.Condition{Status: metav1.ConditionUnknown, Reason: clusterv1.MachineInfrastructureDeletedReason}, node: unknown},
		"a failure that is out of date":  {infrastructure: &metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready"}, failure: "VM was deleted", node: unknown},
		"only a Node that is not Ready":  {infrastructure: &metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready"}, node: unknown},
		"only a provider with a problem": {infrastructure: notReady("NotReady", "throttled"), node: unknown},
		"nothing is known":               {},
	} {
		t.Run(name, func(t *testing.T) {
			machine := &clusterv1.Machine{}
			machine.Status.NodeRef.Name = "node"
			if test.infrastructure != nil {
				test.infrastructure.Type = clusterv1.MachineInfrastructureReadyCondition
				machine.Status.Conditions = append(machine.Status.Conditions, *test.infrastructure)
			}
			if test.node != "" {
				machine.Status.Conditions = append(machine.Status.Conditions, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionFalse, Reason: test.node})
			}
			if test.failure != "" {
				machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{FailureMessage: &test.failure}} //nolint:staticcheck // Providers set it.
			}
			if got, needsSilence := InstanceGone(machine); got != test.want || needsSilence != test.needsSilence {
				t.Errorf("got %q and %t, want %q and %t", got, needsSilence, test.want, test.needsSilence)
			}
		})
	}
}

func TestSilent(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		status corev1.ConditionStatus // of Ready; empty if there is no such condition
		since  time.Duration          // its age
		node   time.Duration          // the age of the Node; an hour if zero
		want   bool
		left   time.Duration
	}{
		"Ready":                               {status: corev1.ConditionTrue, since: time.Hour},
		"not Ready within the last minute":    {status: corev1.ConditionFalse, since: time.Minute, left: 4 * time.Minute},
		"Unknown within the last minute":      {status: corev1.ConditionUnknown, since: time.Minute, left: 4 * time.Minute},
		"Unknown for almost 5 minutes":        {status: corev1.ConditionUnknown, since: 5*time.Minute - time.Second, left: time.Second},
		"Unknown for 5 minutes":               {status: corev1.ConditionUnknown, since: 5 * time.Minute, want: true},
		"Unknown since now":                   {status: corev1.ConditionUnknown, left: 5 * time.Minute},
		"by a clock that is ahead":            {status: corev1.ConditionUnknown, since: -time.Minute, left: 6 * time.Minute},
		"an old Node that has never reported": {want: true},
		"a new Node that has never reported":  {node: time.Minute, left: 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-cmp.Or(test.node, time.Hour)))}}
			if test.status != "" {
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: test.status, LastTransitionTime: metav1.NewTime(now.Add(-test.since))}}
			}
			if got, left := Silent(node, now); got != test.want || left != test.left {
				t.Errorf("got %t and %s, want %t and %s", got, left, test.want, test.left)
			}
		})
	}
}

func notReady(reason, message string) *metav1.Condition {
	return &metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}
