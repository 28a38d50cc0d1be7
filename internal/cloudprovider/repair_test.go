// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/node/health"
	coreoptions "sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/remediation"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Karpenter's own code accepts the policies, and resolves the conditions of a Node with them. A Node whose machine can be
// restarted is restarted after the time after which another one is replaced.
func TestRepairPolicies(t *testing.T) {
	ctx := coreoptions.ToContext(t.Context(), &coreoptions.Options{FeatureGates: coreoptions.FeatureGates{NodeRepair: true}})
	matcher, err := health.NewRepairPolicyMatcher(ctx, New(nil, nil, clock.RealClock{}))
	if err != nil {
		t.Fatal(err)
	}
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		condition corev1.NodeConditionType
		status    corev1.ConditionStatus
		// repaired is after how many minutes the Node is repaired; zero if it is not.
		repaired int
		// drained is for how many minutes it is drained before that.
		drained int
	}{
		"Ready":                       {condition: corev1.NodeReady, status: corev1.ConditionTrue},
		"not Ready":                   {condition: corev1.NodeReady, status: corev1.ConditionFalse, repaired: 30},
		"does not report":             {condition: corev1.NodeReady, status: corev1.ConditionUnknown, repaired: 30},
		"little memory":               {condition: corev1.NodeMemoryPressure, status: corev1.ConditionTrue},
		"kernel deadlock":             {condition: "KernelDeadlock", status: corev1.ConditionTrue, repaired: 10},
		"no kernel deadlock":          {condition: "KernelDeadlock", status: corev1.ConditionFalse},
		"deadlock unknown":            {condition: "KernelDeadlock", status: corev1.ConditionUnknown},
		"read-only file system":       {condition: "ReadonlyFilesystem", status: corev1.ConditionTrue, repaired: 10, drained: 10},
		"XFS shut down":               {condition: "XfsShutdown", status: corev1.ConditionTrue, repaired: 10, drained: 10},
		"fatal hardware error":        {condition: "CperHardwareErrorFatal", status: corev1.ConditionTrue, repaired: 10, drained: 10},
		"kubelet unhealthy":           {condition: "KubeletUnhealthy", status: corev1.ConditionTrue, repaired: 30},
		"container runtime unhealthy": {condition: "ContainerRuntimeUnhealthy", status: corev1.ConditionTrue, repaired: 30},
		"restarts of the kubelet":     {condition: "FrequentKubeletRestart", status: corev1.ConditionTrue},
		"corrupt images":              {condition: "CorruptDockerOverlay2", status: corev1.ConditionTrue, repaired: 10, drained: 10},
		"storage of EKS":              {condition: "StorageReady", status: corev1.ConditionFalse, repaired: 30, drained: 10},
		"network of EKS":              {condition: "NetworkingReady", status: corev1.ConditionFalse, repaired: 30, drained: 10},
		"kernel of EKS":               {condition: "KernelReady", status: corev1.ConditionFalse, repaired: 30},
		"container runtime of EKS":    {condition: "ContainerRuntimeReady", status: corev1.ConditionFalse, repaired: 30},
		"GPU of EKS":                  {condition: "AcceleratedHardwareReady", status: corev1.ConditionFalse, repaired: 10, drained: 10},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: tc.condition, Status: tc.status, Reason: "Any", LastTransitionTime: metav1.NewTime(since)},
			}}}
			at := func(minutes int) health.RepairResult {
				return health.Resolve(matcher.Match(node), since.Add(time.Duration(minutes)*time.Minute), time.Time{})
			}
			if tc.repaired == 0 {
				if got := at(10000); got.Action != "" {
					t.Errorf("it is repaired: %+v", got)
				}
				return
			}
			if early := at(tc.repaired - 1); early.Action != "" {
				t.Errorf("it is repaired too early: %+v", early)
			}
			for _, action := range []cloudprovider.RepairAction{cloudprovider.ReplaceNode, cloudprovider.RebootNode} {
				due := at(tc.repaired)
				if due.Action != action || *due.TerminationGracePeriod != time.Duration(tc.drained)*time.Minute {
					t.Errorf("got %+v, want action %s with %d minutes for the drain", due, action, tc.drained)
				}
				remediation.Announce(node)
				if early := at(tc.repaired - 1); early.Action != "" {
					t.Errorf("it is restarted too early: %+v", early)
				}
			}
		})
	}
}

// Core drains no Node whose instance no longer exists, because no kubelet would end its Pods.
func TestGetOfAnInstanceThatNoLongerExists(t *testing.T) {
	for name, tc := range map[string]struct {
		infrastructure, node string // the reasons of the conditions
		givenUp              bool   // by the provider
		silent               time.Duration
		found                bool
	}{
		"it exists":      {infrastructure: "NotReady", node: clusterv1.MachineNodeReadyUnknownReason, found: true},
		"it was deleted": {infrastructure: clusterv1.MachineInfrastructureDeletedReason, node: clusterv1.MachineNodeReadyUnknownReason},
		"its provider has given up, and the Node is Unknown for a minute":  {infrastructure: "NotReady", node: clusterv1.MachineNodeReadyUnknownReason, givenUp: true, silent: time.Minute, found: true},
		"its provider has given up, and the Node is Unknown for 5 minutes": {infrastructure: "NotReady", node: clusterv1.MachineNodeReadyUnknownReason, givenUp: true, silent: 5 * time.Minute},
		"its Node is Ready": {infrastructure: clusterv1.MachineInfrastructureDeletedReason, node: clusterv1.MachineNodeReadyReason, found: true},
	} {
		t.Run(name, func(t *testing.T) {
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m"}, Spec: clusterv1.MachineSpec{ProviderID: "sim://m"}}
			machine.Status.Conditions = []metav1.Condition{
				{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: tc.infrastructure},
				{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionUnknown, Reason: tc.node},
			}
			machine.Status.NodeRef.Name = "node"
			if tc.givenUp {
				machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{FailureMessage: new("VM was deleted")}} //nolint:staticcheck // Providers set it.
			}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(fixture.Noon.Add(-tc.silent))}}
			cached := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(machine, node).
				WithIndex(&clusterv1.Machine{}, clients.MachineProviderIDField, func(o client.Object) []string { return []string{o.(*clusterv1.Machine).Spec.ProviderID} }).Build()
			both := fixture.Cluster{Client: cached, Live: cached}
			_, err := New(&clients.Clusters{Workload: both, Management: both}, nil, clocktesting.NewFakePassiveClock(fixture.Noon)).Get(t.Context(), "sim://m")
			if cloudprovider.IsNodeClaimNotFoundError(err) == tc.found || err != nil && tc.found {
				t.Errorf("got %v, want that it exists: %t", err, tc.found)
			}
		})
	}
}
