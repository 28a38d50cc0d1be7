// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// defaultMaxPods is the kubelet's default for maxPods.
const defaultMaxPods = 110

// defaultEvictionHard has the kubelet's defaults that affect allocatable
// (kubernetes: pkg/kubelet/eviction/defaults_linux.go).
var defaultEvictionHard = map[string]v1alpha1.EvictionThreshold{
	"memory.available": "100Mi",
	"nodefs.available": "10%",
}

// KubeletOf returns the configuration of the kubelets of an instance type's Nodes: that of the
// template, with maxPods from the capacity, and with kubeReserved from its formula. It is nil
// if nothing is set. The capacity is the declared one: if it were that of Nodes, it would
// depend on its own result.
func KubeletOf(kubelet *v1alpha1.KubeletConfiguration, capacity corev1.ResourceList) *v1alpha1.KubeletConfiguration {
	pods, given := capacity[corev1.ResourcePods]
	if kubelet == nil {
		if !given {
			return nil
		}
		kubelet = &v1alpha1.KubeletConfiguration{}
	}
	result := *kubelet
	if result.MaxPods == nil && given {
		result.MaxPods = new(int32(pods.Value()))
	}
	if formula := result.KubeReservedFormula; formula != "" {
		result.KubeReservedFormula = ""
		result.KubeReserved = merged(kubeReserved(formula, capacity, MaxPods(&result)), result.KubeReserved)
	}
	return &result
}

// capacityOf returns an instance type's capacity as its Node reports it.
func capacityOf(declared corev1.ResourceList, kubelet *v1alpha1.KubeletConfiguration) corev1.ResourceList {
	return merged(declared, corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(MaxPods(kubelet)), resource.DecimalSI)})
}

// MaxPods returns how many Pods a kubelet accepts.
func MaxPods(kubelet *v1alpha1.KubeletConfiguration) int32 {
	return lo.FromPtrOr(lo.FromPtr(kubelet).MaxPods, defaultMaxPods)
}

// overheadOf returns the part of the capacity that Pods cannot use: allocatable =
// capacity − kubeReserved − systemReserved − hard eviction thresholds (kubernetes:
// pkg/kubelet/cm/node_container_manager_linux.go, GetNodeAllocatableReservation).
func overheadOf(capacity corev1.ResourceList, kubelet *v1alpha1.KubeletConfiguration) (*cloudprovider.InstanceTypeOverhead, error) {
	evictionHard := defaultEvictionHard
	overhead := &cloudprovider.InstanceTypeOverhead{}
	if kubelet != nil {
		overhead.KubeReserved = reserved(kubelet.KubeReserved, capacity)
		overhead.SystemReserved = reserved(kubelet.SystemReserved, capacity)
		if kubelet.EvictionHard != nil {
			evictionHard = kubelet.EvictionHard
		}
	}
	overhead.EvictionThreshold = corev1.ResourceList{}
	for signal, name := range map[string]corev1.ResourceName{
		"memory.available": corev1.ResourceMemory,
		"nodefs.available": corev1.ResourceEphemeralStorage,
	} {
		threshold, set := evictionHard[signal]
		total, has := capacity[name]
		if !set || !has {
			continue
		}
		quantity, err := thresholdQuantity(string(threshold), total)
		if err != nil {
			return nil, fmt.Errorf("kubelet.evictionHard[%s]: %w", signal, err)
		}
		overhead.EvictionThreshold[name] = quantity
	}
	return overhead, nil
}

// reserved returns the part of a reservation for resources that a machine has.
func reserved(reservation map[corev1.ResourceName]resource.Quantity, capacity corev1.ResourceList) corev1.ResourceList {
	result := corev1.ResourceList{}
	for name, quantity := range reservation {
		if _, has := capacity[name]; has {
			result[name] = quantity.DeepCopy()
		}
	}
	return result
}

// thresholdQuantity resolves a threshold like the kubelet, with its float32 percentages
// and its rounding (kubernetes: pkg/kubelet/eviction/helpers.go,
// parseThresholdStatement, and api/types.go, GetThresholdQuantity).
func thresholdQuantity(threshold string, capacity resource.Quantity) (resource.Quantity, error) {
	percent, isPercentage := strings.CutSuffix(threshold, "%")
	if !isPercentage {
		quantity, err := resource.ParseQuantity(threshold)
		if err != nil {
			return resource.Quantity{}, fmt.Errorf("%q is neither a quantity nor a percentage", threshold)
		}
		return quantity, nil
	}
	value, err := strconv.ParseFloat(percent, 32)
	if err != nil || value < 0 || value > 100 {
		return resource.Quantity{}, fmt.Errorf("%q is not a percentage between 0%% and 100%%", threshold)
	}
	return *resource.NewQuantity(int64(float64(capacity.Value())*float64(float32(value)/100)), resource.BinarySI), nil
}

// hugepages returns the memory that is reserved for huge pages.
func hugepages(capacity corev1.ResourceList) resource.Quantity {
	var sum resource.Quantity
	for name, quantity := range capacity {
		if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			sum.Add(quantity)
		}
	}
	return sum
}
