// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"
	"testing"
	"unique"

	"github.com/samber/lo"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/scheduling/dynamicresources"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// plannedNode is a Node that Karpenter plans, which can have any of the instance types.
type plannedNode []*cloudprovider.InstanceType

func (plannedNode) ID() dynamicresources.NodeClaimID        { return unique.Make("node") }
func (plannedNode) NodeName() string                        { return "" }
func (plannedNode) NodePoolID() dynamicresources.NodePoolID { return unique.Make("general") }
func (plannedNode) Requirements() scheduling.Requirements   { return scheduling.NewRequirements() }

func (n plannedNode) InstanceTypes() []dynamicresources.InstanceTypeID {
	return lo.Map(n, func(it *cloudprovider.InstanceType, _ int) dynamicresources.InstanceTypeID {
		return unique.Make(it.Name)
	})
}

func (n plannedNode) ResourceSlices() map[dynamicresources.InstanceTypeID][]dynamicresources.ResourceSlice {
	return lo.SliceToMap(n, func(it *cloudprovider.InstanceType) (dynamicresources.InstanceTypeID, []dynamicresources.ResourceSlice) {
		return unique.Make(it.Name), lo.Map(it.DynamicResources.ResourceSliceTemplates, func(t *cloudprovider.ResourceSliceTemplate, _ int) dynamicresources.ResourceSlice {
			return dynamicresources.NewTemplateSlice(t)
		})
	})
}

// claimFor returns a claim for devices that match a CEL expression.
func claimFor(count int64, expression string, constraints ...resourcev1.DeviceConstraint) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}},
		}}},
		Constraints: constraints,
	}}}
}

// Karpenter plans a Node for claims only with the instance types that have the devices, although the devices of all types have the
// same driver and the same names.
func TestKarpenterAllocatesDevices(t *testing.T) {
	const small, large, half = `device.attributes["gpu.example.com"].model == "small"`, `device.attributes["gpu.example.com"].model == "large"`, `device.attributes["gpu.example.com"].model == "half"`
	sameBoard := resourcev1.DeviceConstraint{MatchAttribute: new(resourcev1.FullyQualifiedName("gpu.example.com/board"))}
	consumes := func(slices string) []v1alpha1.CounterConsumption {
		return []v1alpha1.CounterConsumption{{CounterSet: "gpu", Counters: amounts("slices", slices)}}
	}
	pair := v1alpha1.Device{Driver: gpuDriver, Count: new(int32(2)), Attributes: ofModel("large")}
	joined := *pair.DeepCopy()
	joined.SharedAttributes = map[string]v1alpha1.LabelValue{"board": "a"}
	var types []v1alpha1.InstanceType
	for _, devices := range []struct {
		name     string
		groups   []v1alpha1.Device
		counters []v1alpha1.DeviceCounters
	}{
		{name: "none"},
		{name: "apart", groups: []v1alpha1.Device{pair}},
		{name: "joined", groups: []v1alpha1.Device{joined}},
		{name: "one", groups: []v1alpha1.Device{{Driver: gpuDriver, Attributes: ofModel("small")}}},
		{
			name: "parts",
			groups: []v1alpha1.Device{
				{Driver: gpuDriver, Attributes: ofModel("whole"), ConsumesCounters: consumes("2")},
				{Driver: gpuDriver, Count: new(int32(4)), Attributes: ofModel("half"), ConsumesCounters: consumes("1")},
			},
			counters: []v1alpha1.DeviceCounters{{Driver: gpuDriver, Name: "gpu", Counters: amounts("slices", "2")}},
		},
	} {
		instanceType := m5large()
		instanceType.Name, instanceType.Devices, instanceType.DeviceCounters = devices.name, devices.groups, devices.counters
		types = append(types, instanceType)
	}
	built, err := build(template(), types...)
	if err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}).Build()
	bindings := dynamicresources.BuildAttributeBindings(map[string][]*cloudprovider.InstanceType{"general": built})
	for name, tc := range map[string]struct {
		claim *resourcev1.ResourceClaim
		want  []string
	}{
		"one GPU":                {claimFor(1, small), []string{"one"}},
		"two GPUs":               {claimFor(2, large), []string{"apart", "joined"}},
		"two GPUs on one board":  {claimFor(2, large, sameBoard), []string{"joined"}},
		"both halves":            {claimFor(2, half), []string{"parts"}},
		"more than both halves":  {claimFor(3, half), nil},
		"a model that none have": {claimFor(1, `device.attributes["gpu.example.com"].model == "huge"`), nil},
	} {
		allocator := dynamicresources.NewAllocator(nil, dynamicresources.AllocatedDeviceState{}, bindings, reader, nil)
		result, err := allocator.Allocate(t.Context(), plannedNode(built), []*resourcev1.ResourceClaim{tc.claim})
		if len(tc.want) == 0 {
			if err == nil || !strings.Contains(err.Error(), "no instance type can satisfy the allocation") {
				t.Errorf("%s: got %v and %v, want an error", name, result, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := lo.Map(result.InstanceTypes, func(id dynamicresources.InstanceTypeID, _ int) string { return id.Value() })
		if slices.Sort(got); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
