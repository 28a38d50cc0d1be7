// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Karpenter plans with exactly what Nodes report, also if core subtracts huge pages from the memory a second time.
func TestAllocatableIsWhatNodesReport(t *testing.T) {
	declared := list("cpu", "2", "memory", "8Gi", "ephemeral-storage", "80Gi", "hugepages-2Mi", "1Gi", "nvidia.com/gpu", "1")
	for name, tc := range map[string]struct {
		capacity, allocatable quantities
		want                  quantities // of what allocatable does not have, or differs
	}{
		"memory":                    {list("memory", "7900Mi"), list("memory", "6700Mi"), nil},
		"all of it":                 {list("cpu", "2", "memory", "7900Mi", "pods", "58"), list("cpu", "1930m", "memory", "6Gi", "pods", "58"), nil},
		"huge pages":                {list("memory", "7900Mi", "hugepages-2Mi", "1Gi"), list("memory", "6776Mi", "hugepages-2Mi", "1Gi"), nil},
		"huge pages of two sizes":   {list("memory", "7900Mi", "hugepages-2Mi", "1Gi", "hugepages-1Gi", "2Gi"), list("memory", "4728Mi", "hugepages-2Mi", "1Gi", "hugepages-1Gi", "2Gi"), nil},
		"no huge pages":             {list("memory", "7900Mi", "hugepages-2Mi", "0"), list("memory", "7800Mi", "hugepages-2Mi", "0"), nil},
		"a disk, with its overhead": {list("ephemeral-storage", "79Gi"), list("ephemeral-storage", "70Gi"), nil},
		"a GPU that does not work":  {list("nvidia.com/gpu", "1"), list("nvidia.com/gpu", "0"), nil},
		"all is allocatable":        {list("memory", "8Gi", "hugepages-2Mi", "0"), list("memory", "8Gi", "hugepages-2Mi", "0"), nil},
		"more than the capacity": {
			list("cpu", "2"), list("cpu", "3"), list("cpu", "2"), // a Node never has more than its capacity
		},
		"what it does not have": {
			list("cpu", "2"), list("cpu", "1", "example.com/x", "1"), list("example.com/x", "0"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			instanceType := m5large()
			instanceType.Capacity = declared
			input := template()
			input.Status.ObservedCapacity = []v1alpha1.ObservedCapacity{{
				InstanceType: "m5.large", Revision: RevisionOf(input), Nodes: 1,
				Capacity: corev1.ResourceList(tc.capacity), Allocatable: corev1.ResourceList(tc.allocatable),
			}}
			types, _ := TypesOf(input, nil, listed(instanceType))
			built, problems := Build(input, types)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got := built[0].Allocatable()
			want := merged(tc.allocatable, tc.want)
			for name, quantity := range want {
				if other := got[name]; other.Cmp(quantity) != 0 {
					t.Errorf("%s: Karpenter plans with %s, want %s", name, other.String(), quantity.String())
				}
			}
			if cpu := got[corev1.ResourceCPU]; tc.allocatable["cpu"] == (resource.Quantity{}) && cpu.String() != "2" {
				t.Errorf("cpu, which Nodes do not report: got %s, want the declared 2", cpu.String())
			}
		})
	}
}

// A type that only NodeClaims still have is planned with as their Nodes are.
func TestAllocatableOfATypeInUse(t *testing.T) {
	capacity := corev1.ResourceList(list("cpu", "2", "memory", "8Gi", "hugepages-2Mi", "1Gi", "pods", "29"))
	allocatable := corev1.ResourceList(list("cpu", "1900m", "memory", "6Gi", "hugepages-2Mi", "1Gi", "pods", "29"))
	kubelet := &v1alpha1.KubeletConfiguration{MaxPods: new(int32(9)), KubeReserved: list("cpu", "1")}
	input := template()
	input.Spec.Kubelet = kubelet
	built, problems := Build(input, []Type{{Name: "gone", Capacity: capacity, Allocatable: allocatable}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, want := range allocatable {
		if got := built[0].Allocatable()[name]; got.Cmp(want) != 0 {
			t.Errorf("%s: got %s, want %s", name, got.String(), want.String())
		}
	}
}
