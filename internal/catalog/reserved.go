// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// share is the part of a resource that is reserved, up to an amount of it. Shares are listed
// in order, and each applies to what lies between the one before and its own amount.
type share struct {
	upTo int64 // 0: no end
	// basisPoints are hundredths of a percent.
	basisPoints int64
}

// The shares are those that the providers document: see v1alpha1.KubeReservedFormula.
var (
	cpuShares    = []share{{1000, 600}, {2000, 100}, {4000, 50}, {0, 25}}
	cpuSharesAKS = []share{{1000, 600}, {2000, 400}, {4000, 200}, {0, 100}}
	memoryShares = []share{{4 * gibibyte, 2500}, {8 * gibibyte, 2000}, {16 * gibibyte, 1000}, {128 * gibibyte, 600}, {0, 200}}
)

// kubeReserved returns the CPU and memory that a formula reserves.
func kubeReserved(formula v1alpha1.KubeReservedFormula, capacity corev1.ResourceList, pods int32) corev1.ResourceList {
	cpu, memory := capacity.Cpu().MilliValue(), capacity.Memory().Value()
	var reservedCPU, reservedMemory int64
	switch formula {
	case v1alpha1.KubeReservedAKS:
		reservedCPU = sum(cpuSharesAKS, cpu)
		reservedMemory = min((50+20*int64(pods))*mebibyte, memory/4)
	case v1alpha1.KubeReservedEKS:
		reservedCPU = sum(cpuShares, cpu)
		reservedMemory = (255 + 11*int64(pods)) * mebibyte
	case v1alpha1.KubeReservedGKE:
		reservedCPU = sum(cpuShares, cpu)
		reservedMemory = sum(memoryShares, memory)
		if memory < gibibyte {
			reservedMemory = 255 * mebibyte
		}
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(reservedCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(reservedMemory/mebibyte*mebibyte, resource.BinarySI),
	}
}

// sum returns the shares of an amount, rounded down.
func sum(shares []share, amount int64) int64 {
	var total, from int64
	for _, s := range shares {
		end := amount
		if s.upTo > 0 {
			end = min(amount, s.upTo)
		}
		if end > from {
			total += (end - from) * s.basisPoints
		}
		from = s.upTo
	}
	return total / 10_000
}
