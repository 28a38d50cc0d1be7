// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The wanted figures are those of the documents of AKS and GKE, and of the program that configures
// Amazon's images.
func TestKubeReserved(t *testing.T) {
	for name, tc := range map[string]struct {
		formula     v1alpha1.KubeReservedFormula
		cpu, memory string
		pods        int32
		wantCPU     string
		wantMemory  string
	}{
		"EKS, m5.large":         {"EKS", "2", "8Gi", 29, "70m", "574Mi"},
		"EKS, m5.24xlarge":      {"EKS", "96", "384Gi", 737, "310m", "8362Mi"},
		"EKS, one core":         {"EKS", "1", "2Gi", 11, "60m", "376Mi"},
		"GKE, 1 core, 4 GiB":    {"GKE", "1", "4Gi", 110, "60m", "1Gi"},
		"GKE, 2 cores, 8 GiB":   {"GKE", "2", "8Gi", 110, "70m", "1843Mi"},
		"GKE, 4 cores, 16 GiB":  {"GKE", "4", "16Gi", 110, "80m", "2662Mi"},
		"GKE, 16 cores, 64 GiB": {"GKE", "16", "64Gi", 110, "110m", "5611Mi"},
		"GKE, 64 and 256 GiB":   {"GKE", "64", "256Gi", 110, "230m", "12165Mi"},
		"GKE, 1 GiB":            {"GKE", "1", "1Gi", 110, "60m", "256Mi"},
		"GKE, less than 1 GiB":  {"GKE", "1", "600Mi", 110, "60m", "255Mi"},
		"AKS, 1 core":           {"AKS", "1", "8Gi", 30, "60m", "650Mi"},
		"AKS, 2 cores":          {"AKS", "2", "8Gi", 30, "100m", "650Mi"},
		"AKS, 4 cores, 4 GiB":   {"AKS", "4", "4Gi", 70, "140m", "1Gi"},
		"AKS, 8 cores":          {"AKS", "8", "32Gi", 110, "180m", "2250Mi"},
		"AKS, 64 cores":         {"AKS", "64", "256Gi", 250, "740m", "5050Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			got := kubeReserved(tc.formula, list("cpu", tc.cpu, "memory", tc.memory), tc.pods)
			if cpu, memory := got.Cpu().String(), got.Memory().String(); cpu != tc.wantCPU || memory != tc.wantMemory {
				t.Errorf("got cpu %s, memory %s, want %s and %s", cpu, memory, tc.wantCPU, tc.wantMemory)
			}
		})
	}
}

// The kubelet gets what the scheduler assumes.
func TestKubeletOf(t *testing.T) {
	fixed := &v1alpha1.KubeletConfiguration{KubeReserved: list("memory", "1Gi"), KubeReservedFormula: v1alpha1.KubeReservedEKS, MaxPods: new(int32(20))}
	for name, tc := range map[string]struct {
		kubelet        *v1alpha1.KubeletConfiguration
		capacity       []string
		wantPods       int32
		wantCPU        string
		wantMemory     string
		wantNoArgument bool
	}{
		"nothing set":                {capacity: []string{"cpu", "2", "memory", "8Gi"}, wantPods: 110, wantCPU: "0", wantMemory: "0", wantNoArgument: true},
		"pods of the type":           {capacity: []string{"cpu", "2", "memory", "8Gi", "pods", "29"}, wantPods: 29, wantCPU: "0", wantMemory: "0"},
		"a formula":                  {&v1alpha1.KubeletConfiguration{KubeReservedFormula: "EKS"}, []string{"cpu", "2", "memory", "8Gi", "pods", "29"}, 29, "70m", "574Mi", false},
		"fixed values go before":     {fixed, []string{"cpu", "2", "memory", "8Gi", "pods", "29"}, 20, "70m", "1Gi", false},
		"a formula and default pods": {&v1alpha1.KubeletConfiguration{KubeReservedFormula: "EKS"}, []string{"cpu", "2", "memory", "8Gi"}, 110, "70m", "1465Mi", false},
	} {
		t.Run(name, func(t *testing.T) {
			capacity := corev1.ResourceList(list(tc.capacity...))
			got := KubeletOf(tc.kubelet, capacity)
			if (got == nil) != tc.wantNoArgument {
				t.Fatalf("got %+v", got)
			}
			overhead, err := overheadOf(capacityOf(capacity, got), got)
			if err != nil {
				t.Fatal(err)
			}
			reserved := overhead.KubeReserved
			if MaxPods(got) != tc.wantPods || reserved.Cpu().String() != tc.wantCPU || reserved.Memory().String() != tc.wantMemory {
				t.Errorf("got %d Pods, reserved %v", MaxPods(got), reserved)
			}
			if got != nil && (got.KubeReservedFormula != "" || len(got.KubeReserved) > 0 && tc.wantCPU == "0") {
				t.Errorf("got the formula %q and %v, want what is reserved, and nothing without a formula", got.KubeReservedFormula, got.KubeReserved)
			}
			if planned := capacityOf(capacity, got); planned.Pods().Value() != int64(tc.wantPods) {
				t.Errorf("Karpenter plans with %v Pods, the kubelet with %d", planned.Pods(), tc.wantPods)
			}
		})
	}
	if fixed.KubeReservedFormula == "" || len(fixed.KubeReserved) != 1 {
		t.Errorf("the input was modified: %+v", fixed)
	}
}
