// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

const gpuDriver = "gpu.example.com"

// gpu returns a device with attributes in pairs of name and value.
func gpu(attributes ...string) v1alpha1.Device {
	device := v1alpha1.Device{Driver: gpuDriver, Name: "gpu"}
	for pair := range slices.Chunk(attributes, 2) {
		if device.Attributes == nil {
			device.Attributes = map[string]v1alpha1.DeviceAttribute{}
		}
		device.Attributes[pair[0]] = v1alpha1.DeviceAttribute{String: &pair[1]}
	}
	return device
}

// gpus returns a group of equal devices.
func gpus(count int32, attributes ...string) v1alpha1.Device {
	device := gpu(attributes...)
	device.Count = &count
	return device
}

// published returns the report of a Node of type m5 with devices.
func published(devices ...v1alpha1.Device) report {
	r := m5("8Gi", "7Gi")
	r.devices = catalog.Devices{Groups: devices}
	return r
}

// learnedFrom returns an entry for type m5.
func learnedFrom(nodes int32, devices ...v1alpha1.Device) []v1alpha1.ObservedDevices {
	return []v1alpha1.ObservedDevices{{InstanceType: "m5", Revision: "r", Nodes: nodes, Devices: devices}}
}

// Devices are learned from what most Nodes publish. Attributes that differ from Node to Node are left out, unless some devices
// of a Node share their values.
func TestDevicesAreLearned(t *testing.T) {
	large, small := gpu("model", "large"), gpu("model", "small")
	bus := func(root string) v1alpha1.Device { return gpu("model", "large", "example.com/root", root) }
	onBus := func(text v1alpha1.LabelValue) v1alpha1.Device {
		device := gpus(2, "model", "large")
		device.SharedAttributes = map[string]v1alpha1.LabelValue{"example.com/root": text}
		return device
	}
	fast := gpu("model", "large")
	fast.Capacity = map[string]resource.Quantity{"memory": resource.MustParse("80Gi")}
	unnamed := gpu("model", "large")
	unnamed.Name = ""
	renamed := gpu("model", "large")
	renamed.Name = "card"
	for name, tc := range map[string]struct {
		declared []v1alpha1.Device
		stored   []v1alpha1.ObservedDevices
		reports  []report
		want     []v1alpha1.ObservedDevices
	}{
		"no driver":                   {reports: []report{published()}},
		"declared ones are missing":   {declared: []v1alpha1.Device{large}, reports: []report{published()}},
		"one that is not declared":    {reports: []report{published(large)}, want: learnedFrom(1, large)},
		"what is declared":            {declared: []v1alpha1.Device{gpus(2, "model", "large")}, reports: []report{published(large, large)}},
		"with another name":           {declared: []v1alpha1.Device{renamed}, reports: []report{published(large)}},
		"another number":              {declared: []v1alpha1.Device{large}, reports: []report{published(large, large)}, want: learnedFrom(1, gpus(2, "model", "large"))},
		"more attributes":             {declared: []v1alpha1.Device{gpu()}, reports: []report{published(large)}, want: learnedFrom(1, large)},
		"of another driver":           {declared: []v1alpha1.Device{{Driver: "nic.example.com"}}, reports: []report{published(large)}, want: learnedFrom(1, large)},
		"a declared one of another":   {declared: []v1alpha1.Device{large, {Driver: "nic.example.com"}}, reports: []report{published(large)}},
		"two kinds":                   {reports: []report{published(large, large, small)}, want: learnedFrom(1, gpus(2, "model", "large"), small)},
		"two Nodes":                   {reports: []report{published(large), published(large)}, want: learnedFrom(2, large)},
		"with other names":            {reports: []report{published(large), published(renamed)}, want: learnedFrom(2, unnamed)},
		"a Node whose driver starts":  {reports: []report{published(large), published()}, want: learnedFrom(1, large)},
		"what most Nodes have":        {reports: []report{published(large), published(large, large), published(large, large)}, want: learnedFrom(2, gpus(2, "model", "large"))},
		"fewer, of as many Nodes":     {reports: []report{published(large, large), published(large)}, want: learnedFrom(1, large)},
		"another capacity":            {reports: []report{published(large), published(fast), published(fast)}, want: learnedFrom(2, fast)},
		"what differs from Node":      {reports: []report{published(gpu("model", "large", "uuid", "a")), published(gpu("model", "large", "uuid", "b"))}, want: learnedFrom(2, large)},
		"what one Node lacks":         {reports: []report{published(gpu("model", "large", "x", "a")), published(large)}, want: learnedFrom(2, large)},
		"what two devices share":      {reports: []report{published(bus("a"), bus("a"), bus("b"), bus("b")), published(bus("c"), bus("c"), bus("d"), bus("d"))}, want: learnedFrom(2, onBus("0"), onBus("1"))},
		"what they share on one Node": {reports: []report{published(bus("a"), bus("a")), published(bus("c"), bus("d"))}, want: learnedFrom(2, gpus(2, "model", "large"))},
		"a type that does not exist":  {reports: []report{{instanceType: "gone", devices: catalog.Devices{Groups: []v1alpha1.Device{large}}}}},

		"it stays without Nodes":                       {stored: learnedFrom(2, large), want: learnedFrom(2, large)},
		"not what only one Node had":                   {stored: learnedFrom(1, large), want: learnedFrom(0, large)},
		"a second Node confirms it":                    {stored: learnedFrom(0, large), reports: []report{published(large)}, want: learnedFrom(2, large)},
		"and shows what differs":                       {stored: learnedFrom(0, gpu("model", "large", "uuid", "a")), reports: []report{published(gpu("model", "large", "uuid", "b"))}, want: learnedFrom(2, large)},
		"a second Node with others":                    {stored: learnedFrom(0, large), reports: []report{published(large, large)}, want: learnedFrom(1, gpus(2, "model", "large"))},
		"the same Node confirms nothing":               {stored: learnedFrom(1, large), reports: []report{published(large)}, want: learnedFrom(1, large)},
		"the only Node does not bring back attributes": {stored: learnedFrom(2, large), reports: []report{published(gpu("model", "large", "uuid", "a"))}, want: learnedFrom(2, large)},
		"nor what devices share":                       {stored: learnedFrom(2, onBus("0")), reports: []report{published(bus("a"), bus("a"))}, want: learnedFrom(2, onBus("0"))},
		"but it changes one":                           {stored: learnedFrom(2, large), reports: []report{published(small)}, want: learnedFrom(2, gpu())},
		"another revision is forgotten":                {stored: []v1alpha1.ObservedDevices{{InstanceType: "m5", Revision: "old", Nodes: 2, Devices: []v1alpha1.Device{large}}}},
		"what is declared by now":                      {declared: []v1alpha1.Device{large}, stored: learnedFrom(2, large)},
		"what is known, of as many Nodes":              {stored: learnedFrom(2, gpus(2, "model", "large")), reports: []report{published(large, large), published(large)}, want: learnedFrom(2, gpus(2, "model", "large"))},
	} {
		t.Run(name, func(t *testing.T) {
			types := map[string]*catalog.Type{"m5": {Name: "m5", Devices: catalog.Devices{Groups: tc.declared}}}
			learned := learnDevices(tc.stored, tc.reports, types, "r")
			if diff := cmp.Diff(tc.want, learned); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			reversed := slices.Clone(tc.reports)
			slices.Reverse(reversed)
			if diff := cmp.Diff(learned, learnDevices(tc.stored, reversed, types, "r")); diff != "" {
				t.Errorf("the order of the Nodes matters (-first +second):\n%s", diff)
			}
			if diff := cmp.Diff(learned, learnDevices(learned, tc.reports, types, "r")); diff != "" && len(tc.reports) > 0 {
				t.Errorf("it is not stable:\n%s", diff)
			}
		})
	}
}

// The devices of many types have a share of the status, and those that Karpenter does not use are left out first.
func TestLearnedDevicesFit(t *testing.T) {
	var reports []report
	types := map[string]*catalog.Type{}
	add := func(name string, attributes int) {
		device := gpu()
		device.Attributes = map[string]v1alpha1.DeviceAttribute{}
		for i := range attributes {
			device.Attributes[fmt.Sprintf("a%d", i)] = v1alpha1.DeviceAttribute{Int: new(int64(i))}
		}
		types[name] = &catalog.Type{Name: name}
		reports = append(reports, report{instanceType: name, devices: catalog.Devices{Groups: []v1alpha1.Device{device}}})
	}
	for i := range 40 {
		add(fmt.Sprintf("type-%02d", i), 10)
	}
	add("huge", 2000)
	names := func(learned []v1alpha1.ObservedDevices) []string {
		return lo.Map(learned, func(o v1alpha1.ObservedDevices, _ int) string { return o.InstanceType })
	}
	stored := []v1alpha1.ObservedDevices{{InstanceType: "a", Revision: "r", Nodes: 1, Devices: []v1alpha1.Device{gpu()}}}
	types["a"] = &catalog.Type{Name: "a"}
	got := learnDevices(stored, reports, types, "r")
	if size := budget.Size(got); size > budget.Devices || len(got) != maxObserved {
		t.Errorf("%d types have %d bytes, want %d and at most %d", len(got), size, maxObserved, budget.Devices)
	}
	if slices.Contains(names(got), "huge") || slices.Contains(names(got), "a") || !slices.IsSorted(names(got)) {
		t.Errorf("got %v, want neither the largest nor the one without Nodes", names(got))
	}
}

// Only what is declared is wrong if Nodes publish something else. More attributes are not.
func TestWrongDevices(t *testing.T) {
	withMemory := func(device v1alpha1.Device, memory string) v1alpha1.Device {
		device.Capacity = map[string]resource.Quantity{"memory": resource.MustParse(memory)}
		return device
	}
	unlike := "devices of gpu.example.com of m5 with the declared attributes and capacity: declared 2, observed 0"
	for name, tc := range map[string]struct {
		declared, observed []v1alpha1.Device
		want               []string
	}{
		"not declared":         {observed: []v1alpha1.Device{gpu("model", "large")}},
		"as declared":          {declared: []v1alpha1.Device{gpus(2, "model", "large")}, observed: []v1alpha1.Device{gpus(2, "model", "large", "x", "y")}},
		"another number":       {declared: []v1alpha1.Device{gpus(2)}, observed: []v1alpha1.Device{gpu()}, want: []string{"devices of gpu.example.com of m5: declared 2, observed 1"}},
		"another model":        {declared: []v1alpha1.Device{gpus(2, "model", "large")}, observed: []v1alpha1.Device{gpus(2, "model", "small")}, want: []string{unlike}},
		"no attribute":         {declared: []v1alpha1.Device{gpus(2, "model", "large")}, observed: []v1alpha1.Device{gpus(2)}, want: []string{unlike}},
		"another capacity":     {declared: []v1alpha1.Device{withMemory(gpus(2), "80Gi")}, observed: []v1alpha1.Device{withMemory(gpus(2), "40Gi")}, want: []string{unlike}},
		"the same capacity":    {declared: []v1alpha1.Device{withMemory(gpus(2), "1Gi")}, observed: []v1alpha1.Device{withMemory(gpus(2), "1024Mi")}},
		"of another driver":    {declared: []v1alpha1.Device{{Driver: "nic.example.com"}}, observed: []v1alpha1.Device{gpu()}},
		"one of the two kinds": {declared: []v1alpha1.Device{gpu("model", "large"), gpu("model", "small")}, observed: []v1alpha1.Device{gpus(2, "model", "large")}, want: []string{"devices of gpu.example.com of m5 with the declared attributes and capacity: declared 1, observed 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			types := map[string]*catalog.Type{"m5": {Name: "m5", Devices: catalog.Devices{Groups: tc.declared}}}
			for nodes, want := range map[int32][]string{0: nil, 1: tc.want} {
				got := wrongDevices(learnedFrom(nodes, tc.observed...), types)
				if len(got)+len(want) > 0 && !slices.Equal(want, got) {
					t.Errorf("%d Nodes: got %q, want %q", nodes, got, want)
				}
			}
		})
	}
	if got := wrongDevices(learnedFrom(1, gpu()), nil); len(got) > 0 {
		t.Errorf("of a type that does not exist: got %q, want nothing", got)
	}
}

// What the ResourceSlices of a Node have is stored if Karpenter plans with it, and reported if it is not what is declared.
func TestDevicesOfResourceSlices(t *testing.T) {
	template := newTemplate()
	claim, node := reportingNode(template, "8Gi", "8Gi")
	slice := func(node string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus"}, Spec: resourcev1.ResourceSliceSpec{
			Driver: gpuDriver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "gpu-0"}},
		}}
	}
	declaring := newCatalog()
	declaring.Spec.InstanceTypes[0].Devices = []v1alpha1.Device{gpus(2)}
	for _, dra := range []bool{true, false} {
		c := newCell(template.DeepCopy(), claim.DeepCopy(), node, declaring.DeepCopy(), slice("node"), slice("other"))
		c.dra = dra
		stored, err := c.reconcile(t, "general")
		if err != nil {
			t.Fatal(err)
		}
		condition := stored.StatusConditions().Get(v1alpha1.ConditionCapacityAccurate)
		if !dra {
			if len(stored.Status.ObservedDevices) > 0 || !condition.IsTrue() {
				t.Errorf("Karpenter ignores devices: got %v and %+v, want nothing learned", stored.Status.ObservedDevices, condition)
			}
			continue
		}
		if diff := cmp.Diff([]v1alpha1.Device{gpu()}, lo.FirstOrEmpty(stored.Status.ObservedDevices).Devices); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		want := "Karpenter uses the capacity that Nodes report, because it differs from the declared one: devices of gpu.example.com of m5: declared 2, observed 1"
		if !condition.IsFalse() || condition.Reason != v1alpha1.ReasonCapacityDiffers || condition.Message != want {
			t.Errorf("got %+v, want %q", condition, want)
		}
	}
}
