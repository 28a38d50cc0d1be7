// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// families are the memory of each family of instance types, in GiB for each CPU.
var families = map[string]int64{"c": 2, "m": 4, "r": 8}

// catalog has the instance types of all clouds in small: three families, from 1 to 64 CPUs, of two architectures, in three
// zones, on demand and spot.
func catalog() *v1alpha1.InstanceTypeCatalog {
	catalog := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "conformance"}}
	zones := []v1alpha1.Zone{"zone-a", "zone-b", "zone-c"}
	for _, family := range slices.Sorted(maps.Keys(families)) {
		memory := families[family]
		for cpu := int64(1); cpu <= 64; cpu *= 2 {
			for _, architecture := range []string{karpv1.ArchitectureAmd64, karpv1.ArchitectureArm64} {
				price := float64(cpu) * (0.025 + 0.001*float64(memory))
				catalog.Spec.InstanceTypes = append(catalog.Spec.InstanceTypes, v1alpha1.InstanceType{
					Name: fmt.Sprintf("%s-%dx-%s", family, cpu, architecture),
					Capacity: corev1.ResourceList{
						corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(cpu*memory<<30, resource.BinarySI),
						corev1.ResourceEphemeralStorage: resource.MustParse("80Gi"),
					},
					Labels: map[string]v1alpha1.LabelValue{corev1.LabelArchStable: v1alpha1.LabelValue(architecture)},
					Offerings: []v1alpha1.Offering{
						{Zones: zones, CapacityType: karpv1.CapacityTypeOnDemand, Price: decimal(price)},
						{Zones: zones, CapacityType: karpv1.CapacityTypeSpot, Price: decimal(price * 0.7)},
					},
				})
			}
		}
	}
	return catalog
}

func decimal(price float64) v1alpha1.Decimal { return v1alpha1.Decimal(fmt.Sprintf("%.4f", price)) }
