// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/kubeadm"
)

const (
	// KwokAnnotation with the value KwokAnnotationValue makes kwok act as the kubelet of a Node.
	KwokAnnotation = "kwok.x-k8s.io/node"
	// KwokAnnotationValue is the value that kwok looks for.
	KwokAnnotationValue = "fake"

	// unregisteredTaint is the taint that Karpenter expects on each Node until it has registered it.
	unregisteredTaint = "karpenter.sh/unregistered"

	containerRuntime = "simulated://1.0.0"
	kernelVersion    = "6.12.0-simulated"
	osImage          = "Simulated Linux"
)

// providerIDOf returns the provider ID of the machine's instance. The UID makes it unique even if a name is used again.
func providerIDOf(machine *infrav1.SimulatedMachine) string {
	return "sim://" + machine.Namespace + "/" + machine.Name + "/" + string(machine.UID)
}

// zoneOf returns the zone that the instance is in.
func zoneOf(machine *infrav1.SimulatedMachine, owner *clusterv1.Machine) string {
	if owner.Spec.FailureDomain != "" {
		return owner.Spec.FailureDomain
	}
	return machine.Spec.Zone
}

// newNode returns the Node as its kubelet would register it without bootstrap data that says otherwise, with the labels that a
// cloud controller adds. It has no addresses: kwok adds those at which it serves logs and exec.
func newNode(machine *infrav1.SimulatedMachine, owner *clusterv1.Machine) *corev1.Node {
	spec := &machine.Spec
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        machine.Name,
			Labels:      nodeLabels(machine, owner),
			Annotations: map[string]string{KwokAnnotation: KwokAnnotationValue},
		},
		Spec: corev1.NodeSpec{
			ProviderID: spec.ProviderID,
			Taints: append([]corev1.Taint{
				{Key: unregisteredTaint, Effect: corev1.TaintEffectNoExecute},
				clusterv1.NodeUninitializedTaint,
			}, spec.NodeTaints...),
		},
		Status: corev1.NodeStatus{
			Capacity:    spec.Capacity.DeepCopy(),
			Allocatable: kubeadm.Allocatable(spec.Capacity, spec.Reserved),
			NodeInfo: corev1.NodeSystemInfo{
				MachineID:               strings.ReplaceAll(string(machine.UID), "-", ""),
				SystemUUID:              string(machine.UID),
				BootID:                  string(machine.UID),
				KernelVersion:           kernelVersion,
				OSImage:                 osImage,
				ContainerRuntimeVersion: containerRuntime,
				KubeletVersion:          owner.Spec.Version,
				OperatingSystem:         spec.OperatingSystemOrDefault(),
				Architecture:            string(spec.ArchitectureOrDefault()),
			},
		},
	}
}

// joinAs lets a Node join as its bootstrap data says. The labels of the cloud controller replace those of the kubelet.
func joinAs(node *corev1.Node, join *kubeadm.Join, machine corev1.ResourceList) {
	node.Labels = lo.Assign(join.Labels, node.Labels)
	node.Spec.Taints = join.Taints
	node.Status.Capacity, node.Status.Allocatable = join.Resources(machine)
}

func nodeLabels(machine *infrav1.SimulatedMachine, owner *clusterv1.Machine) map[string]string {
	labels := map[string]string{}
	for key, value := range machine.Spec.NodeLabels {
		labels[key] = value
	}
	for key, value := range map[string]string{
		corev1.LabelHostname:           machine.Name,
		corev1.LabelArchStable:         string(machine.Spec.ArchitectureOrDefault()),
		corev1.LabelOSStable:           machine.Spec.OperatingSystemOrDefault(),
		corev1.LabelInstanceTypeStable: machine.Spec.InstanceType,
		corev1.LabelTopologyZone:       zoneOf(machine, owner),
		corev1.LabelTopologyRegion:     machine.Spec.Region,
	} {
		if value != "" {
			labels[key] = value
		}
	}
	return labels
}

// healthyConditions are the conditions that a healthy kubelet reports.
func healthyConditions(now time.Time) []corev1.NodeCondition {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
		}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
	}
}
