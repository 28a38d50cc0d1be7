// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/kubeadm"
)

func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func TestNewNode(t *testing.T) {
	machine := &infrav1.SimulatedMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w-1", UID: "aa-bb"},
		Spec: infrav1.SimulatedMachineSpec{
			ProviderID:   "sim://default/w-1/aa-bb",
			Capacity:     resources("cpu", "2", "memory", "8Gi", "pods", "110"),
			Reserved:     resources("cpu", "100m", "memory", "300Mi"),
			Zone:         "zone-a",
			Region:       "region-1",
			InstanceType: "m-large",
			Architecture: "arm64",
			NodeLabels:   map[string]string{"k": "v", corev1.LabelTopologyZone: "not this one"},
			NodeTaints:   []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
	owner := &clusterv1.Machine{Spec: clusterv1.MachineSpec{Version: "v1.36.3", FailureDomain: "zone-b"}}
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "w-1",
			Labels: map[string]string{
				"k":                                "v",
				"kubernetes.io/hostname":           "w-1",
				"kubernetes.io/arch":               "arm64",
				"kubernetes.io/os":                 "linux",
				"node.kubernetes.io/instance-type": "m-large",
				"topology.kubernetes.io/zone":      "zone-b",
				"topology.kubernetes.io/region":    "region-1",
			},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec: corev1.NodeSpec{
			ProviderID: "sim://default/w-1/aa-bb",
			Taints: []corev1.Taint{
				karpv1.UnregisteredNoExecuteTaint,
				{Key: "node.cluster.x-k8s.io/uninitialized", Effect: corev1.TaintEffectNoSchedule},
				{Key: "gpu", Effect: corev1.TaintEffectNoSchedule},
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    resources("cpu", "2", "memory", "8Gi", "pods", "110"),
			Allocatable: resources("cpu", "1900m", "memory", "7892Mi", "pods", "110"),
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: "aabb", SystemUUID: "aa-bb", BootID: "aa-bb",
				KernelVersion: kernelVersion, OSImage: osImage, ContainerRuntimeVersion: containerRuntime,
				KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "arm64",
			},
		},
	}
	if diff := cmp.Diff(want, newNode(machine, owner)); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
}

func TestNewNodeOfAnEmptySpec(t *testing.T) {
	node := newNode(&infrav1.SimulatedMachine{ObjectMeta: metav1.ObjectMeta{Name: "w-1"}}, &clusterv1.Machine{})
	want := map[string]string{"kubernetes.io/hostname": "w-1", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
	if diff := cmp.Diff(want, node.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestProviderID(t *testing.T) {
	machine := &infrav1.SimulatedMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w-1", UID: "aa-bb"}}
	if got, want := providerIDOf(machine), "sim://default/w-1/aa-bb"; got != want {
		t.Errorf("provider ID = %q, want %q", got, want)
	}
}

func TestAllocatable(t *testing.T) {
	tests := map[string]struct {
		capacity, reserved, want corev1.ResourceList
	}{
		"nothing reserved": {
			capacity: resources("cpu", "2"),
			want:     resources("cpu", "2"),
		},
		"some reserved": {
			capacity: resources("cpu", "2", "memory", "1Gi"),
			reserved: resources("cpu", "500m"),
			want:     resources("cpu", "1500m", "memory", "1Gi"),
		},
		"more reserved than the capacity": {
			capacity: resources("cpu", "1"),
			reserved: resources("cpu", "2"),
			want:     resources("cpu", "0"),
		},
		"a resource without capacity cannot be reserved": {
			capacity: resources("cpu", "1"),
			reserved: resources("example.com/gpu", "1"),
			want:     resources("cpu", "1"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.capacity.DeepCopy()
			if diff := cmp.Diff(tc.want, kubeadm.Allocatable(tc.capacity, tc.reserved)); diff != "" {
				t.Errorf("allocatable (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.capacity); diff != "" {
				t.Errorf("the capacity was changed (-before +after):\n%s", diff)
			}
		})
	}
}
