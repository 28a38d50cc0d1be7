// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	metricsnode "sigs.k8s.io/karpenter/pkg/controllers/metrics/node"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

func TestDerivedLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		capacity quantities
		labels   map[string]v1alpha1.LabelValue
		want     map[string]string // empty: the label does not exist
	}{
		"no GPU": {capacity: list("cpu", "2500m", "memory", "7935Mi"), want: map[string]string{
			v1alpha1.InstanceCPULabel: "2", v1alpha1.InstanceMemoryLabel: "7935", v1alpha1.InstanceGPUCountLabel: "",
			v1alpha1.InstanceGPUNameLabel: "", v1alpha1.InstanceFamilyLabel: "", corev1.LabelTopologyRegion: "", corev1.LabelWindowsBuild: "",
		}},
		"GPUs of two vendors": {
			capacity: list("cpu", "2", "memory", "8Gi", "nvidia.com/gpu", "4", "amd.com/gpu", "2", "vendor.com/gpu-shared", "1", "gpu.intel.com/i915", "9", "cpu.example.com/x", "3"),
			want:     map[string]string{v1alpha1.InstanceGPUCountLabel: "7"},
		},
		"the memory that is sold": {
			capacity: list("cpu", "2", "memory", "7577Mi"), labels: map[string]v1alpha1.LabelValue{v1alpha1.InstanceMemoryLabel: "8192"},
			want: map[string]string{v1alpha1.InstanceMemoryLabel: "8192"},
		},
		"labels that are set": {
			capacity: list("cpu", "2", "memory", "8Gi"),
			labels:   map[string]v1alpha1.LabelValue{v1alpha1.InstanceFamilyLabel: "m5", v1alpha1.InstanceGPUNameLabel: "t4", corev1.LabelTopologyRegion: "r"},
			want:     map[string]string{v1alpha1.InstanceFamilyLabel: "m5", v1alpha1.InstanceGPUNameLabel: "t4", corev1.LabelTopologyRegion: "r", corev1.LabelArchStable: "amd64"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			instanceType := m5large()
			instanceType.Capacity, instanceType.Labels = tc.capacity, tc.labels
			built, err := build(template(), instanceType)
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range tc.want {
				requirement := built[0].Requirements[key]
				if requirement == nil || requirement.Any() != want || (want == "") != (requirement.Operator() == corev1.NodeSelectorOpDoesNotExist) {
					t.Errorf("%s: got %v, want %q", key, requirement, want)
				}
			}
			for key, requirement := range built[0].Requirements {
				if requirement.Key != key {
					t.Errorf("the requirement for label %s is one for %s", key, requirement.Key)
				}
			}
			if name := built[0].Requirements.Get(corev1.LabelInstanceTypeStable); !name.Has("m5.large") || name.Len() != 1 {
				t.Errorf("got instance type %s", name)
			}
			for key := range karpv1.WellKnownLabels {
				if key != karpv1.NodePoolLabelKey && !built[0].Requirements.Has(key) {
					t.Errorf("no requirement for the well-known label %s", key)
				}
			}
		})
	}
}

func TestReservedOfferings(t *testing.T) {
	instanceType := m5large()
	instanceType.Offerings = append(instanceType.Offerings, v1alpha1.Offering{Zones: []v1alpha1.Zone{"a"}, CapacityType: "reserved", Price: "0.01", Reservation: &v1alpha1.Reservation{ID: "cr-1", Count: 3}})
	built, err := build(template(), instanceType)
	if err != nil {
		t.Fatal(err)
	}
	for _, offering := range built[0].Offerings {
		want := ""
		if offering.CapacityType() == karpv1.CapacityTypeReserved {
			want = "cr-1"
			if offering.ReservationCapacity != 3 {
				t.Errorf("got capacity %d", offering.ReservationCapacity)
			}
		}
		if offering.ReservationID() != want || !offering.Requirements.Has(v1alpha1.ReservationIDLabel) {
			t.Errorf("%s: got reservation %q, want %q", offering.CapacityType(), offering.ReservationID(), want)
		}
		if none := offering.Requirements[v1alpha1.ReservationIDLabel].Operator() == corev1.NodeSelectorOpDoesNotExist; none != (want == "") {
			t.Errorf("%s: there is no label for a reservation: %t", offering.CapacityType(), none)
		}
	}
	if !cloudprovider.ReservedCapacityLabels.Has(v1alpha1.ReservationIDLabel) || cloudprovider.ReservationIDLabel != v1alpha1.ReservationIDLabel {
		t.Error("Karpenter does not know the label for reservations")
	}
}

// A Pod that requires a label of some instance types gets one of these, and a Pod that
// requires none gets any.
func TestLabelsOfATemplate(t *testing.T) {
	ssd, plain := m5large(), m5large()
	ssd.Name, ssd.Labels = "ssd", map[string]v1alpha1.LabelValue{"example.com/disk": "ssd"}
	built, err := build(template(), ssd, plain)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		pod  scheduling.Requirements
		want []string
	}{
		"nothing":          {scheduling.NewRequirements(), []string{"m5.large", "ssd"}},
		"the label":        {scheduling.NewLabelRequirements(map[string]string{"example.com/disk": "ssd"}), []string{"ssd"}},
		"another value":    {scheduling.NewLabelRequirements(map[string]string{"example.com/disk": "hdd"}), nil},
		"that it exists":   {scheduling.NewRequirements(scheduling.NewRequirement("example.com/disk", corev1.NodeSelectorOpExists)), []string{"ssd"}},
		"that it does not": {scheduling.NewRequirements(scheduling.NewRequirement("example.com/disk", corev1.NodeSelectorOpDoesNotExist)), []string{"m5.large"}},
	} {
		t.Run(name, func(t *testing.T) {
			// Like core: the NodePool does not mention the label.
			pool := scheduling.NewLabelRequirements(map[string]string{karpv1.NodePoolLabelKey: "pool"})
			if err := pool.Compatible(tc.pod, scheduling.AllowUndefinedWellKnownLabels); err != nil {
				t.Fatalf("the NodePool rejects the Pod: %s", err)
			}
			var got []string
			for _, instanceType := range built {
				if instanceType.Requirements.Intersects(tc.pod) == nil {
					got = append(got, instanceType.Name)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	if karpv1.WellKnownLabels.Has("example.com/disk") {
		t.Error("a label was added to the well-known ones, although metrics can already be set up with them")
	}
}

// A label that another template gives to its Nodes does not exist on the Nodes of this
// one, unless the NodePool sets it.
func TestLabelsOfAnotherTemplate(t *testing.T) {
	ctx, now := t.Context(), time.Now()
	labelled := listed(m5large())
	labelled.Name, labelled.Spec.InstanceTypes[0].Labels = "labelled", map[string]v1alpha1.LabelValue{"example.com/rack": "r1", v1alpha1.InstanceFamilyLabel: "m5"}
	c, _ := newWorld(t, listed(m5large()), labelled)
	one := template("types")
	one.UID, one.Generation = "1", 1
	if _, err := c.InstanceTypes(ctx, one, now); err != nil {
		t.Fatal(err)
	}
	other := template("labelled")
	other.Name, other.UID = "other", "2"
	if _, err := c.InstanceTypes(ctx, other, now); err != nil {
		t.Fatal(err)
	}
	wants := func(labels ...string) *scheduling.Requirement {
		instanceTypes, err := c.InstanceTypesFor(ctx, one, Demand{Labels: labels}, now)
		if err != nil {
			t.Fatal(err)
		}
		return instanceTypes[0].Requirements["example.com/rack"]
	}
	if got := wants("example.com/team"); got == nil || got.Operator() != corev1.NodeSelectorOpDoesNotExist {
		t.Errorf("got %v, want that the label does not exist", got)
	}
	if got := wants("example.com/rack"); got != nil {
		t.Errorf("got %v for a NodePool that has the label", got)
	}
	own, err := c.InstanceTypesFor(ctx, other, Demand{Labels: []string{"example.com/rack", corev1.LabelTopologyZone}}, now)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][]string{"example.com/rack": {"r1"}, corev1.LabelTopologyZone: {"a", "b"}} {
		if got := own[0].Requirements[key]; got == nil || !slices.Equal(slices.Sorted(slices.Values(got.Values())), want) {
			t.Errorf("label %s, which the template gives: got %v for a NodePool that has it, want %v", key, got, want)
		}
	}
	if _, _, known, err := c.NodeLabels(ctx, other, "m6.large"); known || err != nil {
		t.Errorf("the labels of a type that does not exist are known: %t, %v", known, err)
	}
	labels, keys, known, err := c.NodeLabels(ctx, other, "m5.large")
	if err != nil || !known || labels["example.com/rack"] != "r1" || !keys.Has("example.com/rack") || keys.HasAny("example.com/disk", v1alpha1.InstanceFamilyLabel) {
		t.Errorf("got %v, %v, %t and %v", labels, keys, known, err)
	}
}

func TestMinValues(t *testing.T) {
	var given []v1alpha1.InstanceType
	for _, family := range []string{"m5", "m5", "c5"} {
		instanceType := m5large()
		instanceType.Name = family + strings.Repeat("x", len(given))
		instanceType.Labels = map[string]v1alpha1.LabelValue{v1alpha1.InstanceFamilyLabel: v1alpha1.LabelValue(family)}
		given = append(given, instanceType)
	}
	built, err := build(template(), given...)
	if err != nil {
		t.Fatal(err)
	}
	for families, want := range map[int]bool{2: true, 3: false} {
		requirements := scheduling.NewRequirements(scheduling.NewRequirementWithFlexibility(v1alpha1.InstanceFamilyLabel, corev1.NodeSelectorOpExists, &families))
		if _, _, err := cloudprovider.InstanceTypes(built).SatisfiesMinValues(requirements); (err == nil) != want {
			t.Errorf("%d families: got %v", families, err)
		}
	}
}

// Karpenter's metrics have one label for each well-known label when they are set up, and
// prometheus panics if one is added.
func TestMetricsKnowTheLabels(t *testing.T) {
	metricsnode.NewController(nil)
	labels := map[string]string{"node_name": "x", "phase": "x", "managed": "x", "resource_type": "x"}
	for key := range karpv1.WellKnownLabels {
		_, name, _ := strings.Cut(key, "/")
		labels[strings.ReplaceAll(name, "-", "_")] = "x"
	}
	for _, name := range []string{"instance_cpu", "instance_memory", "instance_gpu_count", "instance_gpu_name", "instance_family", "reservation_id"} {
		if labels[name] == "" {
			t.Errorf("no metric has label %s", name)
		}
	}
	if _, err := build(template(), func() v1alpha1.InstanceType {
		it := m5large()
		it.Labels = map[string]v1alpha1.LabelValue{"example.com/late": "yes"}
		return it
	}()); err != nil {
		t.Fatal(err)
	}
	metricsnode.Allocatable.Set(1, labels) // panics if the labels differ
}
