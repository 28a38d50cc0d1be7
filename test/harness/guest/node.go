// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/controller"
	"github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/kubeadm"
)

// Version is the version of Kubernetes in the images, and in the samples.
const Version = "v1.36.3"

// overhead is the part, in percent, that the kernel needs of the memory and the file system of the disk, so that the Node does not have
// it.
const overhead = 3

// Resources returns what the kernel leaves of a machine.
func Resources(cpus, memoryMiB, diskGiB int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(cpus, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memoryMiB<<20*(100-overhead)/100, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(diskGiB<<30*(100-overhead)/100, resource.BinarySI),
	}
}

// newNode returns the Node that the kubelet registers, with what the cloud controller manager adds.
func newNode(machine Machine, join *kubeadm.Join) *corev1.Node {
	capacity, allocatable := join.Resources(machine.Resources)
	// The labels of the cloud controller replace those of the kubelet.
	labels := lo.Assign(join.Labels, map[string]string{corev1.LabelHostname: join.NodeName, corev1.LabelOSStable: "linux"}, machine.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: join.NodeName, Labels: labels, Annotations: map[string]string{controller.KwokAnnotation: controller.KwokAnnotationValue},
		},
		Spec: corev1.NodeSpec{ProviderID: machine.ProviderID, Taints: join.Taints},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatable, NodeInfo: corev1.NodeSystemInfo{KubeletVersion: Version},
		},
	}
}
