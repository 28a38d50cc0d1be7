// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strings"
	"testing"
	"unique"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

const gpuDriver, nicDriver = "gpu.example.com", "nic.example.com"

func amounts(of ...string) map[string]resource.Quantity {
	return lo.SliceToMap(lo.Chunk(of, 2), func(pair []string) (string, resource.Quantity) { return pair[0], resource.MustParse(pair[1]) })
}

func ofModel(model string) map[string]v1alpha1.DeviceAttribute {
	return map[string]v1alpha1.DeviceAttribute{"model": {String: &model}}
}

// described returns Karpenter's form of devices as lines: each device of each slice, each counter set, and each binding.
func described(d cloudprovider.DynamicResources) []string {
	var lines []string
	for _, slice := range d.ResourceSliceTemplates {
		in := slice.Driver.Value() + "/" + slice.Pool.Name.Value()
		for _, set := range slice.SharedCounters {
			lines = append(lines, fmt.Sprintf("%s has %s: %s", in, set.Name, text(set.Counters)))
		}
		for _, device := range slice.Devices {
			lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s/%s: %s %s %s", in, device.Name.Value(), text(device.Attributes), text(device.Capacity), text(device.ConsumesCounters)), " null"))
		}
	}
	for _, binding := range d.AttributeBindings {
		lines = append(lines, fmt.Sprintf("same %s: %s", binding.Attribute, strings.Join(lo.Map(binding.Devices, func(id cloudprovider.DeviceID, _ int) string { return id.String() }), " ")))
	}
	return lines
}

// Karpenter gets each device of a catalog, with a name of its own in its pool.
func TestDynamicResources(t *testing.T) {
	for name, tc := range map[string]struct {
		groups   []v1alpha1.Device
		counters []v1alpha1.DeviceCounters
		want     []string
	}{
		"none": {},
		"one device": {groups: []v1alpha1.Device{{Driver: gpuDriver}}, want: []string{
			`gpu.example.com/m5.large/gpu.example.com/device-0: {} {}`,
		}},
		"several with a name": {groups: []v1alpha1.Device{{Driver: gpuDriver, Name: "gpu", Count: new(int32(2)), Attributes: ofModel("l"), Capacity: amounts("memory", "24Gi")}}, want: []string{
			`gpu.example.com/m5.large/gpu.example.com/gpu-0: {"model":{"string":"l"}} {"memory":{"value":"24Gi"}}`,
			`gpu.example.com/m5.large/gpu.example.com/gpu-1: {"model":{"string":"l"}} {"memory":{"value":"24Gi"}}`,
		}},
		"groups with the same name": {groups: []v1alpha1.Device{{Driver: gpuDriver, Attributes: ofModel("a")}, {Driver: gpuDriver, Attributes: ofModel("b")}}, want: []string{
			`gpu.example.com/m5.large/gpu.example.com/device-0: {"model":{"string":"a"}} {}`,
			`gpu.example.com/m5.large/gpu.example.com/device-1: {"model":{"string":"b"}} {}`,
		}},
		"two pools and two drivers": {groups: []v1alpha1.Device{{Driver: gpuDriver, Pool: "a"}, {Driver: gpuDriver, Pool: "b"}, {Driver: nicDriver}}, want: []string{
			`gpu.example.com/m5.large/a/device-0: {} {}`,
			`gpu.example.com/m5.large/b/device-0: {} {}`,
			`nic.example.com/m5.large/nic.example.com/device-0: {} {}`,
		}},
		"partitions of two GPUs": {
			groups: []v1alpha1.Device{
				{Driver: gpuDriver, Name: "gpu", Count: new(int32(2)), ConsumesCounters: []v1alpha1.CounterConsumption{{CounterSet: "gpu", Counters: amounts("slices", "2")}}},
				{Driver: gpuDriver, Name: "half", Count: new(int32(4)), ConsumesCounters: []v1alpha1.CounterConsumption{{CounterSet: "gpu", Counters: amounts("slices", "1")}}},
			},
			counters: []v1alpha1.DeviceCounters{{Driver: gpuDriver, Name: "gpu", Count: new(int32(2)), Counters: amounts("slices", "2")}},
			want: []string{
				`gpu.example.com/m5.large/gpu.example.com has gpu-0: {"slices":{"value":"2"}}`,
				`gpu.example.com/m5.large/gpu.example.com has gpu-1: {"slices":{"value":"2"}}`,
				`gpu.example.com/m5.large/gpu.example.com/gpu-0: {} {} [{"counterSet":"gpu-0","counters":{"slices":{"value":"2"}}}]`,
				`gpu.example.com/m5.large/gpu.example.com/gpu-1: {} {} [{"counterSet":"gpu-1","counters":{"slices":{"value":"2"}}}]`,
				`gpu.example.com/m5.large/gpu.example.com/half-0: {} {} [{"counterSet":"gpu-0","counters":{"slices":{"value":"1"}}}]`,
				`gpu.example.com/m5.large/gpu.example.com/half-1: {} {} [{"counterSet":"gpu-1","counters":{"slices":{"value":"1"}}}]`,
				`gpu.example.com/m5.large/gpu.example.com/half-2: {} {} [{"counterSet":"gpu-0","counters":{"slices":{"value":"1"}}}]`,
				`gpu.example.com/m5.large/gpu.example.com/half-3: {} {} [{"counterSet":"gpu-1","counters":{"slices":{"value":"1"}}}]`,
			},
		},
		"shared attributes": {
			groups: []v1alpha1.Device{
				{Driver: gpuDriver, Count: new(int32(2)), SharedAttributes: map[string]v1alpha1.LabelValue{"example.com/root": "a", "board": "x"}},
				{Driver: nicDriver, SharedAttributes: map[string]v1alpha1.LabelValue{"example.com/root": "a"}},
				{Driver: nicDriver, SharedAttributes: map[string]v1alpha1.LabelValue{"example.com/root": "b"}},
			},
			want: []string{
				`gpu.example.com/m5.large/gpu.example.com/device-0: {} {}`,
				`gpu.example.com/m5.large/gpu.example.com/device-1: {} {}`,
				`nic.example.com/m5.large/nic.example.com/device-0: {} {}`,
				`nic.example.com/m5.large/nic.example.com/device-1: {} {}`,
				`same example.com/root: gpu.example.com/m5.large/gpu.example.com/device-0 gpu.example.com/m5.large/gpu.example.com/device-1 nic.example.com/m5.large/nic.example.com/device-0`,
				`same example.com/root: nic.example.com/m5.large/nic.example.com/device-1`,
				`same gpu.example.com/board: gpu.example.com/m5.large/gpu.example.com/device-0 gpu.example.com/m5.large/gpu.example.com/device-1`,
			},
		},
		"a policy": {
			groups: []v1alpha1.Device{{
				Driver: gpuDriver, AllowMultipleAllocations: true, Capacity: amounts("memory", "8Gi"),
				RequestPolicies: map[string]v1alpha1.CapacityRequestPolicy{"memory": {Default: new(resource.MustParse("2Gi")), ValidRange: &v1alpha1.CapacityRange{Min: new(resource.MustParse("1Gi"))}}},
			}},
			want: []string{`gpu.example.com/m5.large/gpu.example.com/device-0: {} {"memory":{"value":"8Gi","requestPolicy":{"default":"2Gi","validRange":{"min":"1Gi"}}}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			instanceType := m5large()
			instanceType.Devices, instanceType.DeviceCounters = tc.groups, tc.counters
			built, err := build(template(), instanceType)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, described(built[0].DynamicResources)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// For each driver, Karpenter plans with what Nodes publish.
func TestObservedDevicesAreUsed(t *testing.T) {
	instanceType := m5large()
	instanceType.Devices = []v1alpha1.Device{{Driver: gpuDriver, Count: new(int32(4))}, {Driver: nicDriver}}
	input := template()
	input.Status.ObservedDevices = []v1alpha1.ObservedDevices{{
		InstanceType: "m5.large", Revision: RevisionOf(input), Nodes: 1, Devices: []v1alpha1.Device{{Driver: gpuDriver, Name: "gpu", Attributes: ofModel("l")}},
	}}
	learned := []string{`nic.example.com/m5.large/nic.example.com/device-0: {} {}`, `gpu.example.com/m5.large/gpu.example.com/gpu-0: {"model":{"string":"l"}} {}`}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ObservedDevices)
		want   []string
	}{
		"from a Node":                   {func(*v1alpha1.ObservedDevices) {}, learned},
		"from Nodes that existed":       {func(o *v1alpha1.ObservedDevices) { o.Nodes = 2 }, learned},
		"from one Node that existed":    {func(o *v1alpha1.ObservedDevices) { o.Nodes = 0 }, nil},
		"from Nodes of other templates": {func(o *v1alpha1.ObservedDevices) { o.Revision = "v1-another" }, nil},
		"of another type":               {func(o *v1alpha1.ObservedDevices) { o.InstanceType = "m5.xlarge" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			input := input.DeepCopy()
			tc.change(&input.Status.ObservedDevices[0])
			built, err := build(input, instanceType)
			if err != nil {
				t.Fatal(err)
			}
			if got := described(built[0].DynamicResources); tc.want != nil && !cmp.Equal(tc.want, got) || tc.want == nil && len(got) != 5 {
				t.Errorf("got:\n%s", strings.Join(got, "\n"))
			}
		})
	}
}

func TestWrongDevices(t *testing.T) {
	consumes := func(set, counter string) []v1alpha1.CounterConsumption {
		return []v1alpha1.CounterConsumption{{CounterSet: set, Counters: amounts(counter, "1")}}
	}
	policies := func(policy v1alpha1.CapacityRequestPolicy) map[string]v1alpha1.CapacityRequestPolicy {
		return map[string]v1alpha1.CapacityRequestPolicy{"memory": policy}
	}
	set := v1alpha1.DeviceCounters{Driver: gpuDriver, Name: "gpu", Counters: amounts("slices", "7")}
	one := resource.MustParse("1")
	for name, tc := range map[string]struct {
		device   v1alpha1.Device
		counters []v1alpha1.DeviceCounters
		want     string
	}{
		"no driver":                  {device: v1alpha1.Device{Driver: "a_b"}, want: `devices[0]: expected the name of a DRA driver, such as gpu.nvidia.com, found "a_b"`},
		"a wrong name":               {device: v1alpha1.Device{Driver: gpuDriver, Attributes: map[string]v1alpha1.DeviceAttribute{"a-b": {Int: new(int64(1))}}}, want: `attributes: expected a name such as productName or example.com/model, found "a-b"`},
		"a wrong domain":             {device: v1alpha1.Device{Driver: gpuDriver, Capacity: amounts("A/b", "1")}, want: `capacity: expected a name`},
		"a long name":                {device: v1alpha1.Device{Driver: gpuDriver, SharedAttributes: map[string]v1alpha1.LabelValue{strings.Repeat("a", 33): "x"}}, want: `sharedAttributes: expected a name`},
		"no value":                   {device: v1alpha1.Device{Driver: gpuDriver, Attributes: map[string]v1alpha1.DeviceAttribute{"a": {}}}, want: "attributes.a: expected one of int, bool, string and version, found 0"},
		"two values":                 {device: v1alpha1.Device{Driver: gpuDriver, Attributes: map[string]v1alpha1.DeviceAttribute{"a": {Int: new(int64(1)), Bool: new(true)}}}, want: "attributes.a: expected one of int, bool, string and version, found 2"},
		"no version":                 {device: v1alpha1.Device{Driver: gpuDriver, Attributes: map[string]v1alpha1.DeviceAttribute{"a": {Version: new("v1")}}}, want: `attributes.a: expected a semantic version, such as 8.9.0, found "v1"`},
		"known and shared":           {device: v1alpha1.Device{Driver: gpuDriver, Attributes: ofModel("l"), SharedAttributes: map[string]v1alpha1.LabelValue{gpuDriver + "/model": "x"}}, want: "sharedAttributes: attributes has the value of gpu.example.com/model"},
		"less than nothing":          {device: v1alpha1.Device{Driver: gpuDriver, Capacity: amounts("memory", "-1")}, want: "capacity memory must not be less than 0, found -1"},
		"a policy for nothing":       {device: v1alpha1.Device{Driver: gpuDriver, AllowMultipleAllocations: true, RequestPolicies: policies(v1alpha1.CapacityRequestPolicy{})}, want: "requestPolicies.memory: capacity has no memory"},
		"a policy without sharing":   {device: v1alpha1.Device{Driver: gpuDriver, Capacity: amounts("memory", "1"), RequestPolicies: policies(v1alpha1.CapacityRequestPolicy{Default: &one})}, want: "requestPolicies.memory: set allowMultipleAllocations, too"},
		"a policy without a default": {device: v1alpha1.Device{Driver: gpuDriver, AllowMultipleAllocations: true, Capacity: amounts("memory", "1"), RequestPolicies: policies(v1alpha1.CapacityRequestPolicy{ValidValues: []resource.Quantity{one}})}, want: "requestPolicies.memory: set default, too"},
		"values in no order":         {device: v1alpha1.Device{Driver: gpuDriver, AllowMultipleAllocations: true, Capacity: amounts("memory", "1"), RequestPolicies: policies(v1alpha1.CapacityRequestPolicy{Default: &one, ValidValues: []resource.Quantity{resource.MustParse("2"), one}})}, want: "requestPolicies.memory: validValues must be in ascending order"},
		"an unknown counter set":     {device: v1alpha1.Device{Driver: gpuDriver, ConsumesCounters: consumes("gpu", "slices")}, want: "consumesCounters: deviceCounters has no gpu of driver gpu.example.com and the same pool"},
		"a set of another pool":      {device: v1alpha1.Device{Driver: gpuDriver, Pool: "a", ConsumesCounters: consumes("gpu", "slices")}, counters: []v1alpha1.DeviceCounters{set}, want: "consumesCounters: deviceCounters has no gpu"},
		"an unknown counter":         {device: v1alpha1.Device{Driver: gpuDriver, ConsumesCounters: consumes("gpu", "x")}, counters: []v1alpha1.DeviceCounters{set}, want: "consumesCounters: counter set gpu has no counter x"},
		"a set that is given twice":  {device: v1alpha1.Device{Driver: gpuDriver}, counters: []v1alpha1.DeviceCounters{set, set}, want: "deviceCounters: gpu of gpu.example.com is given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			instanceType := m5large()
			instanceType.Devices, instanceType.DeviceCounters = []v1alpha1.Device{tc.device}, tc.counters
			if built, err := build(template(), instanceType); err == nil || !strings.Contains(err.Error(), tc.want) || len(built) > 0 {
				t.Errorf("got %d instance types and %v, want none and %q", len(built), err, tc.want)
			}
		})
	}
	instanceType := m5large()
	instanceType.Devices = lo.RepeatBy(5, func(int) v1alpha1.Device { return v1alpha1.Device{Driver: gpuDriver, Count: new(int32(128))} })
	if _, err := build(template(), instanceType); err == nil || !strings.Contains(err.Error(), "devices: it has 640, and can have 512") {
		t.Errorf("got %v, want that there are too many", err)
	}
}

// The annotations of cluster-autoscaler describe the devices of discovered types. GPUs of a DRA driver are no resource, unless
// gpu-type names it, too.
func TestDevicesOfAnAnnotation(t *testing.T) {
	gpus := func(count int32) []v1alpha1.Device {
		return []v1alpha1.Device{{Driver: gpuDriver, Name: "gpu", Count: &count, Attributes: map[string]v1alpha1.DeviceAttribute{"type": {String: new("gpu")}}}}
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		devices     []v1alpha1.Device
		resource    int64 // nvidia.com/gpu
	}{
		"no driver":       {annotations: map[string]string{gpuCountAnnotation: "2"}, resource: 2},
		"a driver":        {annotations: map[string]string{gpuCountAnnotation: "2", devicesAnnotation: gpuDriver}, devices: gpus(2)},
		"no count":        {annotations: map[string]string{devicesAnnotation: gpuDriver}},
		"no GPU":          {annotations: map[string]string{gpuCountAnnotation: "0", devicesAnnotation: gpuDriver}},
		"both of it":      {annotations: map[string]string{gpuCountAnnotation: "1", devicesAnnotation: gpuDriver, gpuTypeAnnotation: "nvidia.com/gpu"}, devices: gpus(1), resource: 1},
		"an empty driver": {annotations: map[string]string{gpuCountAnnotation: "2", devicesAnnotation: ""}, resource: 2},
	} {
		got, err := fromInfrastructure(infrastructureTemplate("large", tc.annotations), estimated)
		if diff := cmp.Diff(tc.devices, got.Devices.Groups); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if quantity := got.Capacity["nvidia.com/gpu"]; quantity.Value() != tc.resource {
			t.Errorf("%s: got %s of nvidia.com/gpu, want %d", name, quantity.String(), tc.resource)
		}
	}
	for annotation, text := range map[string]string{devicesAnnotation: "a b", gpuCountAnnotation: "many"} {
		annotations := map[string]string{devicesAnnotation: gpuDriver, gpuCountAnnotation: "1"}
		annotations[annotation] = text
		if _, err := fromInfrastructure(infrastructureTemplate("large", annotations), estimated); err == nil || !strings.Contains(err.Error(), annotation) || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: got %v, want an error that names the annotation and its value", text, err)
		}
	}
}

// Catalogs and discovered objects can contradict each other in devices as in capacity.
func TestDevicesContradict(t *testing.T) {
	for name, tc := range map[string]struct {
		one, other v1alpha1.Device
		want       string // empty if they do not
	}{
		"another number":    {v1alpha1.Device{Driver: gpuDriver}, v1alpha1.Device{Driver: gpuDriver, Count: new(int32(2))}, "devices: 2 of gpu.example.com instead of 1 of gpu.example.com"},
		"another driver":    {v1alpha1.Device{Driver: gpuDriver}, v1alpha1.Device{Driver: nicDriver}, "devices: 1 of nic.example.com instead of 1 of gpu.example.com"},
		"another attribute": {v1alpha1.Device{Driver: gpuDriver}, v1alpha1.Device{Driver: gpuDriver, Attributes: ofModel("l")}, "devices: other attributes, capacity or counters"},
		"another name":      {v1alpha1.Device{Driver: gpuDriver}, v1alpha1.Device{Driver: gpuDriver, Name: "gpu", Count: new(int32(1))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := m5large(), m5large()
			one.Devices, other.Devices = []v1alpha1.Device{tc.one}, []v1alpha1.Device{tc.other}
			other.Offerings = []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"z"}, Price: "1"}}
			second := listed(other)
			second.Name = "types-2"
			types, problems := TypesOf(template(), nil, listed(one), second)
			texts := strings.Join(lo.Map(problems, func(p Problem, _ int) string { return p.Message }), "; ")
			if (len(types) == 0) != (tc.want != "") || !strings.Contains(texts, tc.want) {
				t.Errorf("got %d types and %q, want %q", len(types), texts, tc.want)
			}
		})
	}
}

// The devices of a discovered object can be described in less detail than those of the catalog.
func TestDiscoveredDevicesAreLessDetailed(t *testing.T) {
	detailed := Devices{Groups: []v1alpha1.Device{{Driver: gpuDriver, Attributes: ofModel("l")}, {Driver: nicDriver}}}
	for count, want := range map[int32]int{1: 0, 2: 1} {
		found := Devices{Groups: []v1alpha1.Device{{Driver: gpuDriver, Count: &count}}}
		if got := deviceDifferences(found, detailed, false); len(got) != want {
			t.Errorf("%d devices: got %v, want %d differences", count, got, want)
		}
	}
	if got := deviceDifferences(Devices{}, detailed, false); len(got) > 0 {
		t.Errorf("no devices: got %v, want no difference", got)
	}
}

// What the drivers of a Node publish is the same in any order, and a pool of which slices are missing is left out.
func TestPublishedDevices(t *testing.T) {
	slice := func(driver, pool string, generation, count int64, devices ...string) resourcev1.ResourceSlice {
		spec := resourcev1.ResourceSliceSpec{Driver: driver, Pool: resourcev1.ResourcePool{Name: pool, Generation: generation, ResourceSliceCount: count}}
		for _, name := range devices {
			spec.Devices = append(spec.Devices, resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"index": {IntValue: new(int64(len(name)))}, "list": {IntValues: []int64{1}},
			}})
		}
		return resourcev1.ResourceSlice{Spec: spec}
	}
	group := func(driver, pool, name string, index int64) v1alpha1.Device {
		return v1alpha1.Device{Driver: driver, Pool: pool, Name: name, Attributes: map[string]v1alpha1.DeviceAttribute{"index": {Int: &index}}}
	}
	for name, tc := range map[string]struct {
		slices []resourcev1.ResourceSlice
		want   []v1alpha1.Device
	}{
		"none":             {},
		"one pool":         {slices: []resourcev1.ResourceSlice{slice(gpuDriver, "node", 1, 1, "gpu-1", "gpu-0")}, want: []v1alpha1.Device{group(gpuDriver, "", "gpu", 5), group(gpuDriver, "", "gpu", 5)}},
		"in two slices":    {slices: []resourcev1.ResourceSlice{slice(gpuDriver, "node", 1, 2, "b-0"), slice(gpuDriver, "node", 1, 2, "a-0")}, want: []v1alpha1.Device{group(gpuDriver, "", "a", 3), group(gpuDriver, "", "b", 3)}},
		"one is missing":   {slices: []resourcev1.ResourceSlice{slice(gpuDriver, "node", 1, 2, "gpu-0")}},
		"an older one":     {slices: []resourcev1.ResourceSlice{slice(gpuDriver, "node", 2, 1, "gpu-0"), slice(gpuDriver, "node", 1, 1, "gpu-0", "gpu-1")}, want: []v1alpha1.Device{group(gpuDriver, "", "gpu", 5)}},
		"two pools":        {slices: []resourcev1.ResourceSlice{slice(gpuDriver, "node-b", 1, 1, "0"), slice(gpuDriver, "node-a", 1, 1, "device-0")}, want: []v1alpha1.Device{group(gpuDriver, "0", "", 8), group(gpuDriver, "1", "", 1)}},
		"of two drivers":   {slices: []resourcev1.ResourceSlice{slice(nicDriver, "node", 1, 1, "eth0"), slice(gpuDriver, "node", 1, 1, "gpu-0")}, want: []v1alpha1.Device{group(gpuDriver, "", "gpu", 5), group(nicDriver, "", "eth", 4)}},
		"without a device": {slices: []resourcev1.ResourceSlice{slice(nicDriver, "node", 1, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, PublishedDevices(tc.slices).Groups); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What a driver publishes for a partitionable and shareable device is what Karpenter then plans with.
func TestPublishedDevicesAreComplete(t *testing.T) {
	devices := resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: gpuDriver, Pool: resourcev1.ResourcePool{Name: "node", ResourceSliceCount: 2}, Devices: []resourcev1.Device{{
		Name: "gpu-0", AllowMultipleAllocations: new(true),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"a": {IntValue: new(int64(0))}, "b": {BoolValue: new(false)}, "c": {StringValue: new("")}, "example.com/d": {VersionValue: new("1.2.3")},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("8Gi"), RequestPolicy: &resourcev1.CapacityRequestPolicy{
			Default: new(resource.MustParse("1Gi")), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: new(resource.MustParse("1Gi")), Max: new(resource.MustParse("4Gi")), Step: new(resource.MustParse("1Gi"))},
		}}},
		ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "board", Counters: map[string]resourcev1.Counter{"slices": {Value: resource.MustParse("1")}}}},
	}}}}
	counters := resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: gpuDriver, Pool: devices.Spec.Pool, SharedCounters: []resourcev1.CounterSet{
		{Name: "board", Counters: map[string]resourcev1.Counter{"slices": {Value: resource.MustParse("7")}}},
	}}}
	found := PublishedDevices([]resourcev1.ResourceSlice{devices, counters})
	if err := checkDevices(found); err != nil {
		t.Fatal(err)
	}
	want := devices.Spec.Devices[0]
	want.ConsumesCounters[0].CounterSet = "board-0"
	got := dynamicResources("m5.large", found)
	if len(got.ResourceSliceTemplates) != 2 {
		t.Fatalf("got %d slices, want one with counters and one with devices", len(got.ResourceSliceTemplates))
	}
	if diff := cmp.Diff(counters.Spec.SharedCounters[0].Counters, got.ResourceSliceTemplates[0].SharedCounters[0].Counters); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	device := got.ResourceSliceTemplates[1].Devices[0]
	if diff := cmp.Diff(want, resourcev1.Device{
		Name: "gpu-0", AllowMultipleAllocations: &device.AllowMultipleAllocations, Attributes: device.Attributes, Capacity: device.Capacity, ConsumesCounters: device.ConsumesCounters,
	}); diff != "" || device.Name != unique.Make("gpu-0") {
		t.Errorf("%s (-want +got):\n%s", device.Name.Value(), diff)
	}
}
