// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// One Pod gets a Node of its own. A second claim has no Node yet. What happens at the times 0, 1, 2 … are the steps.
func TestSteps(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return began.Add(time.Duration(second) * time.Second) }
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1"}
	}
	pod := &corev1.Pod{ObjectMeta: meta("pod")}
	claim := &karpv1.NodeClaim{ObjectMeta: meta("claim")}
	deployment := &clusterv1.MachineDeployment{ObjectMeta: meta("machines")}
	machine := &clusterv1.Machine{ObjectMeta: meta("machine")}
	node := &corev1.Node{ObjectMeta: meta("node"), Spec: corev1.NodeSpec{ProviderID: "sim://1", Taints: []corev1.Taint{{Key: "karpenter.sh/unregistered"}}}}
	line := newTimeline()
	line.observePod(pod, false, at(0))
	line.observeClaim(claim, false, at(1))
	line.observeClaim(&karpv1.NodeClaim{ObjectMeta: meta("later")}, false, at(2))
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
	line.observeClaim(claim, false, at(2))
	deployment.Spec.Replicas = new(int32(1))
	line.observeMachineDeployment(deployment, false, at(3))
	line.observeMachine(machine, false, at(5))
	machine.Labels = map[string]string{v1alpha1.NodeClaimUIDLabel: "claim"}
	line.observeMachine(machine, false, at(6))
	machine.Spec.ProviderID = "sim://1"
	line.observeMachine(machine, false, at(8))
	claim.Status.ProviderID = "sim://1"
	line.observeClaim(claim, false, at(9))
	line.observeNode(node, false, at(11))
	claim.Status.NodeName = "node"
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
	line.observeClaim(claim, false, at(12))
	node.Spec.Taints = nil
	line.observeNode(node, false, at(14))
	pod.Spec.NodeName = "node"
	line.observePod(pod, false, at(15))
	pod.Status.Phase = corev1.PodRunning
	line.observePod(pod, false, at(17))

	got := lo.SliceToMap(line.steps(), func(s step) (string, float64) { return s.Name, s.Distribution.Max })
	want := map[string]float64{
		"Pod created → claim created (Karpenter's batch)":  1,
		"claim created → launched":                         1,
		"claim launched → replicas written":                1,
		"claim created → replicas written":                 2,
		"replicas written → Machine created (Cluster API)": 2,
		"claim created → Machine created":                  4,
		"Machine created → link":                           1,
		"Machine created → Node created":                   6,
		"Machine has its provider ID → claim has it":       1,
		"claim created → Node created":                     10,
		"Node created → claim registered":                  1,
		"claim registered → last taint gone":               2,
		"last taint gone → Pod bound":                      1,
		"Pod bound → running":                              2,
		"Pod created → running":                            17,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}
