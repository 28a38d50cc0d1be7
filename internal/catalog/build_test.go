// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

type quantities = map[corev1.ResourceName]resource.Quantity

func list(pairs ...string) quantities {
	result := quantities{}
	for i := 0; i < len(pairs); i += 2 {
		result[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return result
}

// template returns a template that refers to catalogs.
func template(catalogs ...string) *v1alpha1.KarpenterMachineTemplate {
	t := &v1alpha1.KarpenterMachineTemplate{}
	t.Name = "general"
	t.Spec.CatalogRefs = lo.Map(catalogs, func(name string, _ int) v1alpha1.CatalogReference { return v1alpha1.CatalogReference{Name: name} })
	t.Spec.Template.Spec.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: "workers"}
	return t
}

// listed returns the catalog types, with instance types.
func listed(instanceTypes ...v1alpha1.InstanceType) *v1alpha1.InstanceTypeCatalog {
	c := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "types", UID: "types", Generation: 1}}
	c.Spec.InstanceTypes = instanceTypes
	return c
}

func m5large() v1alpha1.InstanceType {
	return v1alpha1.InstanceType{
		Name:     "m5.large",
		Capacity: list("cpu", "2", "memory", "8Gi", "ephemeral-storage", "80Gi"),
		Offerings: []v1alpha1.Offering{
			{Zones: []v1alpha1.Zone{"a"}, CapacityType: "on-demand", Price: "0.096"},
			{Zones: []v1alpha1.Zone{"b"}, CapacityType: "on-demand", Price: "0.096"},
			{Zones: []v1alpha1.Zone{"a"}, CapacityType: "spot", Price: "0.035"},
		},
	}
}

// build returns the instance types of a template with one catalog, and the messages of its
// problems.
func build(template *v1alpha1.KarpenterMachineTemplate, given ...v1alpha1.InstanceType) ([]*cloudprovider.InstanceType, error) {
	types, problems := TypesOf(template, nil, listed(given...))
	built, more := Build(template, types)
	var errs []error
	for _, problem := range append(problems, more...) {
		errs = append(errs, errors.New(problem.Message))
	}
	return built, errors.Join(errs...)
}

func TestAllocatableIsWhatAKubeletReports(t *testing.T) {
	for name, tc := range map[string]struct {
		capacity quantities
		kubelet  *v1alpha1.KubeletConfiguration
		want     quantities
	}{
		"a kubelet's defaults": {
			capacity: list("cpu", "2", "memory", "8Gi", "ephemeral-storage", "80Gi"),
			// 100Mi of memory, and 10 % of the disk with the kubelet's float32 rounding
			want: list("cpu", "2", "memory", "8092Mi", "ephemeral-storage", "77309411200", "pods", "110"),
		},
		"no disk given": {
			capacity: list("cpu", "2", "memory", "8Gi"),
			want:     list("cpu", "2", "memory", "8092Mi", "pods", "110"),
		},
		"reservations": {
			capacity: list("cpu", "2", "memory", "8Gi"),
			kubelet:  &v1alpha1.KubeletConfiguration{SystemReserved: list("cpu", "100m", "memory", "200Mi"), KubeReserved: list("cpu", "80m", "memory", "600Mi", "ephemeral-storage", "1Gi", "pid", "1000")},
			want:     list("cpu", "1820m", "memory", "7292Mi", "pods", "110"),
		},
		"a percentage is rounded as the kubelet does": {
			capacity: list("cpu", "2", "memory", "7935Mi"),
			kubelet:  &v1alpha1.KubeletConfiguration{EvictionHard: map[string]v1alpha1.EvictionThreshold{"memory.available": "5%"}},
			// 5 % are 416022528 bytes; in float32 they are 416022534.
			want: list("cpu", "2", "memory", "7904428026", "pods", "110"),
		},
		"signals that are not named have no threshold": {
			capacity: list("cpu", "2", "memory", "8Gi", "ephemeral-storage", "80Gi"),
			kubelet:  &v1alpha1.KubeletConfiguration{EvictionHard: map[string]v1alpha1.EvictionThreshold{"memory.available": "1Gi"}},
			want:     list("cpu", "2", "memory", "7Gi", "ephemeral-storage", "80Gi", "pods", "110"),
		},
		"no thresholds at all": {
			capacity: list("cpu", "2", "memory", "8Gi", "ephemeral-storage", "80Gi"),
			kubelet:  &v1alpha1.KubeletConfiguration{EvictionHard: map[string]v1alpha1.EvictionThreshold{}},
			want:     list("cpu", "2", "memory", "8Gi", "ephemeral-storage", "80Gi", "pods", "110"),
		},
		"everything is reserved": {
			capacity: list("cpu", "2", "memory", "8Gi"),
			kubelet:  &v1alpha1.KubeletConfiguration{KubeReserved: list("cpu", "2", "memory", "8092Mi")},
			want:     list("cpu", "0", "memory", "0", "pods", "110"),
		},
		"the least and the greatest percentage": {
			capacity: list("cpu", "2", "memory", "8Gi", "ephemeral-storage", "80Gi"),
			kubelet:  &v1alpha1.KubeletConfiguration{EvictionHard: map[string]v1alpha1.EvictionThreshold{"memory.available": "0%", "nodefs.available": "100%"}},
			want:     list("cpu", "2", "memory", "8Gi", "ephemeral-storage", "0", "pods", "110"),
		},
		"a threshold for a disk that is not given": {
			capacity: list("cpu", "2", "memory", "8Gi"),
			kubelet:  &v1alpha1.KubeletConfiguration{EvictionHard: map[string]v1alpha1.EvictionThreshold{"nodefs.available": "1Gi"}},
			want:     list("cpu", "2", "memory", "8Gi", "pods", "110"),
		},
		"maxPods": {
			capacity: list("cpu", "2", "memory", "8Gi", "pods", "29"),
			kubelet:  &v1alpha1.KubeletConfiguration{MaxPods: new(int32(58))},
			want:     list("cpu", "2", "memory", "8092Mi", "pods", "58"),
		},
		"pods of the instance type": {
			capacity: list("cpu", "2", "memory", "8Gi", "pods", "29"),
			want:     list("cpu", "2", "memory", "8092Mi", "pods", "29"),
		},
		"a GPU": {
			capacity: list("cpu", "2", "memory", "8Gi", "nvidia.com/gpu", "4"),
			want:     list("cpu", "2", "memory", "8092Mi", "nvidia.com/gpu", "4", "pods", "110"),
		},
		"hugepages are subtracted from memory": {
			capacity: list("cpu", "2", "memory", "8Gi", "hugepages-2Mi", "1Gi"),
			want:     list("cpu", "2", "memory", "7068Mi", "hugepages-2Mi", "1Gi", "pods", "110"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			instanceType := m5large()
			instanceType.Capacity = tc.capacity
			input := template()
			input.Spec.Kubelet = tc.kubelet
			built, err := build(input, instanceType)
			if err != nil || len(built) != 1 {
				t.Fatalf("got %d instance types and %v", len(built), err)
			}
			got := built[0].Allocatable()
			if len(got) != len(tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			for name, want := range tc.want {
				if quantity := got[name]; quantity.Cmp(want) != 0 {
					t.Errorf("%s: got %s, want %s", name, quantity.String(), want.String())
				}
			}
		})
	}
}

func TestWhatCannotBeOffered(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(t *v1alpha1.KarpenterMachineTemplate, bad *v1alpha1.InstanceType)
		want   string
	}{
		"negative capacity": {
			func(t *v1alpha1.KarpenterMachineTemplate, bad *v1alpha1.InstanceType) {
				bad.Capacity["cpu"] = resource.MustParse("-1")
			},
			"InstanceTypeCatalog types (bad): capacity.cpu must be more than 0, found -1",
		},
		"no memory": {
			func(t *v1alpha1.KarpenterMachineTemplate, bad *v1alpha1.InstanceType) {
				bad.Capacity["memory"] = resource.MustParse("0")
			},
			"InstanceTypeCatalog types (bad): capacity.memory must be more than 0, found 0",
		},
		"reservations beyond the capacity": {
			func(t *v1alpha1.KarpenterMachineTemplate, bad *v1alpha1.InstanceType) {
				bad.Capacity["memory"] = resource.MustParse("64Mi")
			},
			"InstanceTypeCatalog types (bad): kubelet reserves more memory than the capacity of 64Mi",
		},
		"a formula that reserves more than the capacity": {
			func(t *v1alpha1.KarpenterMachineTemplate, bad *v1alpha1.InstanceType) {
				t.Spec.Kubelet = &v1alpha1.KubeletConfiguration{KubeReservedFormula: v1alpha1.KubeReservedEKS}
				bad.Capacity["memory"] = resource.MustParse("1Gi")
			},
			"InstanceTypeCatalog types (bad): kubelet reserves more memory than the capacity of 1Gi",
		},
		"a threshold below nothing": {
			func(t *v1alpha1.KarpenterMachineTemplate, bad *v1alpha1.InstanceType) {
				t.Spec.Kubelet = &v1alpha1.KubeletConfiguration{EvictionHard: map[string]v1alpha1.EvictionThreshold{"nodefs.available": "-1%"}}
			},
			`InstanceTypeCatalog types (bad): kubelet.evictionHard[nodefs.available]: "-1%" is not a percentage between 0% and 100%`,
		},
		"a threshold above everything": {
			func(t *v1alpha1.KarpenterMachineTemplate, bad *v1alpha1.InstanceType) {
				t.Spec.Kubelet = &v1alpha1.KubeletConfiguration{EvictionHard: map[string]v1alpha1.EvictionThreshold{"nodefs.available": "101%"}}
			},
			`kubelet.evictionHard[nodefs.available]: "101%" is not a percentage between 0% and 100%`,
		},
		"a price that no number can hold": {
			func(t *v1alpha1.KarpenterMachineTemplate, bad *v1alpha1.InstanceType) {
				bad.Offerings[0].Price = v1alpha1.Decimal(strings.Repeat("9", 400))
			},
			"is not a decimal number of at least 0",
		},
		"no infrastructure": {
			func(t *v1alpha1.KarpenterMachineTemplate, bad *v1alpha1.InstanceType) {
				t.Spec.Template.Spec.InfrastructureRef = nil
			},
			"InstanceTypeCatalog types (bad): infrastructureRef: set it here or in spec.template.spec",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bad, good := m5large(), m5large()
			bad.Name = "bad"
			good.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: "x.y", Kind: "Own", Name: "own"}
			delete(good.Capacity, "ephemeral-storage")
			input := template()
			tc.change(input, &bad)
			built, err := build(input, bad, good)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
			if len(built) != 1 || built[0].Name != "m5.large" {
				t.Errorf("one bad instance type must not stop the others; got %d", len(built))
			}
		})
	}
}

// A type that cannot be built is a problem, and costs the others nothing.
func TestWhatCannotBeBuilt(t *testing.T) {
	input := template()
	input.Spec.Kubelet = &v1alpha1.KubeletConfiguration{EvictionHard: map[string]v1alpha1.EvictionThreshold{"nodefs.available": "much"}}
	types := []Type{{Name: "disk", Capacity: corev1.ResourceList(list("cpu", "2", "memory", "8Gi", "ephemeral-storage", "80Gi"))}, {Name: "diskless", Capacity: corev1.ResourceList(list("cpu", "2", "memory", "8Gi"))}}
	built, problems := Build(input, types)
	if len(built) != 1 || built[0].Name != "diskless" {
		t.Errorf("got %d types, want the one without a disk", len(built))
	}
	want := []Problem{{v1alpha1.ReasonInstanceTypesInvalid, `instance type disk: kubelet.evictionHard[nodefs.available]: "much" is neither a quantity nor a percentage`}}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestRequirements(t *testing.T) {
	spotInA := scheduling.NewLabelRequirements(map[string]string{corev1.LabelTopologyZone: "a", karpv1.CapacityTypeLabelKey: "spot"})
	spotInB := scheduling.NewLabelRequirements(map[string]string{corev1.LabelTopologyZone: "b", karpv1.CapacityTypeLabelKey: "spot"})
	for name, tc := range map[string]struct {
		change       func(*v1alpha1.InstanceType)
		requirements scheduling.Requirements
		wantType     bool // whether the instance type is compatible
		wantPrices   []float64
	}{
		"anything":             {requirements: scheduling.NewRequirements(), wantType: true, wantPrices: []float64{0.096, 0.096, 0.035}},
		"spot in zone a":       {requirements: spotInA, wantType: true, wantPrices: []float64{0.035}},
		"spot in zone b":       {requirements: spotInB, wantType: true}, // of the type, but of no single offering
		"amd64 by default":     {requirements: scheduling.NewLabelRequirements(map[string]string{corev1.LabelArchStable: "amd64"}), wantType: true, wantPrices: []float64{0.096, 0.096, 0.035}},
		"not arm64 by default": {requirements: scheduling.NewLabelRequirements(map[string]string{corev1.LabelArchStable: "arm64"}), wantPrices: []float64{0.096, 0.096, 0.035}},
		"arm64": {change: func(it *v1alpha1.InstanceType) {
			it.Labels = map[string]v1alpha1.LabelValue{corev1.LabelArchStable: "arm64"}
		}, requirements: scheduling.NewLabelRequirements(map[string]string{corev1.LabelArchStable: "arm64"}), wantType: true, wantPrices: []float64{0.096, 0.096, 0.035}},
		"a region it lacks": {requirements: scheduling.NewLabelRequirements(map[string]string{corev1.LabelTopologyRegion: "r"}), wantPrices: []float64{0.096, 0.096, 0.035}},
		"a region it has": {change: func(it *v1alpha1.InstanceType) {
			it.Labels = map[string]v1alpha1.LabelValue{corev1.LabelTopologyRegion: "r"}
		}, requirements: scheduling.NewLabelRequirements(map[string]string{corev1.LabelTopologyRegion: "r"}), wantType: true, wantPrices: []float64{0.096, 0.096, 0.035}},
		"a zone that it lacks":        {change: func(it *v1alpha1.InstanceType) { it.Offerings = it.Offerings[:1] }, requirements: spotInB},
		"a label with an empty value": {change: func(it *v1alpha1.InstanceType) { it.Labels = map[string]v1alpha1.LabelValue{"x.y/role": ""} }, requirements: scheduling.NewLabelRequirements(map[string]string{"x.y/role": ""}), wantType: true, wantPrices: []float64{0.096, 0.096, 0.035}},
		"a label of its own":          {change: func(it *v1alpha1.InstanceType) { it.Labels = map[string]v1alpha1.LabelValue{"x.y/z": "1"} }, requirements: scheduling.NewLabelRequirements(map[string]string{"x.y/z": "1"}), wantType: true, wantPrices: []float64{0.096, 0.096, 0.035}},
		"no zones, none wanted": {change: func(it *v1alpha1.InstanceType) {
			it.Offerings = []v1alpha1.Offering{{CapacityType: "on-demand", Price: "1"}}
		}, requirements: scheduling.NewRequirements(), wantType: true, wantPrices: []float64{1}},
		"no zones, but one asked": {change: func(it *v1alpha1.InstanceType) {
			it.Offerings = []v1alpha1.Offering{{CapacityType: "on-demand", Price: "1"}}
		}, requirements: spotInA},
	} {
		t.Run(name, func(t *testing.T) {
			instanceType := m5large()
			if tc.change != nil {
				tc.change(&instanceType)
			}
			built, err := build(template(), instanceType)
			if err != nil {
				t.Fatal(err)
			}
			if got := tc.requirements.IsCompatible(built[0].Requirements, scheduling.AllowUndefinedWellKnownLabels); got != tc.wantType {
				t.Errorf("compatible: got %t, want %t: %v", got, tc.wantType, built[0].Requirements)
			}
			var prices []float64
			for _, offering := range built[0].Offerings.Compatible(tc.requirements) {
				prices = append(prices, offering.Price)
			}
			if diff := cmp.Diff(tc.wantPrices, prices); diff != "" {
				t.Errorf("prices (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllocatableIsNeverMoreThanCapacityNorNegative(t *testing.T) {
	property.Check(t, 2000, func(t *rapid.T) {
		upTo := func(most int, format string) string {
			return fmt.Sprintf(format, rapid.IntRange(0, most).Draw(t, format))
		}
		instanceType := m5large()
		instanceType.Capacity = list("cpu", upTo(64, "%d"), "memory", upTo(1<<20, "%dMi"), "ephemeral-storage", upTo(1000, "%dGi"))
		input := template()
		input.Spec.Kubelet = &v1alpha1.KubeletConfiguration{
			SystemReserved: list("memory", upTo(2048, "%dMi"), "cpu", upTo(2000, "%dm")),
			EvictionHard: map[string]v1alpha1.EvictionThreshold{
				"memory.available": v1alpha1.EvictionThreshold(upTo(100, "%d%%")),
				"nodefs.available": v1alpha1.EvictionThreshold(upTo(4096, "%dMi")),
			},
		}
		built, err := build(input, instanceType)
		if err != nil {
			return // rejected
		}
		for name, quantity := range built[0].Allocatable() {
			if capacity := built[0].Capacity[name]; quantity.Sign() < 0 || quantity.Cmp(capacity) > 0 {
				t.Fatalf("%s: allocatable %s of %s", name, quantity.String(), capacity.String())
			}
		}
	})
}
