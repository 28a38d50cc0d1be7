// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// slice returns a ResourceSlice of a Node as it is decoded: each of its texts is a text of its own.
func slice(node string) *resourcev1.ResourceSlice {
	own := func(text string) string { return string([]byte(text)) }
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{
		Name: node + "-gpus", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "driver"}},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node}},
	}}
	slice.Spec = resourcev1.ResourceSliceSpec{
		Driver: own("gpu.example.com"), NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{
			Name: own("gpu-0"),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				resourcev1.QualifiedName(own("model")): {StringValue: new(own("large"))}, resourcev1.QualifiedName(own("index")): {IntValue: new(int64(0))},
			},
			Capacity:         map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{resourcev1.QualifiedName(own("memory")): {Value: resource.MustParse("80Gi")}},
			ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: own("gpu"), Counters: map[string]resourcev1.Counter{own("slices"): {Value: resource.MustParse("7")}}}},
		}},
	}
	return slice
}

// Neither core nor this operator reads what the transform removes, and everything else stays as it is.
func TestStripSlices(t *testing.T) {
	in, want := slice("a"), slice("a")
	want.Labels, want.Annotations, want.ManagedFields = nil, nil, nil
	device := &in.Spec.Devices[0]
	device.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	device.BindingConditions, device.BindingFailureConditions = []string{"Attached"}, []string{"Failed"}
	device.NodeAllocatableResourceMappings = map[corev1.ResourceName]resourcev1.NodeAllocatableResourceMapping{"cpu": {}}
	got, err := StripSlices()(in)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "a"}
	if got, err := StripSlices()(tombstone); err != nil || got != tombstone {
		t.Errorf("got %v and %v, want the tombstone", got, err)
	}
}

// With 1,000 Nodes, a text that all of them have is in memory once.
func TestSlicesShareTexts(t *testing.T) {
	texts := func(node string) []*byte {
		stripped, err := StripSlices()(slice(node))
		if err != nil {
			t.Fatal(err)
		}
		spec := &stripped.(*resourcev1.ResourceSlice).Spec
		device := &spec.Devices[0]
		addresses := []*byte{unsafe.StringData(spec.Driver), unsafe.StringData(device.Name), unsafe.StringData(*device.Attributes["model"].StringValue), unsafe.StringData(device.ConsumesCounters[0].CounterSet)}
		for _, name := range []resourcev1.QualifiedName{"index", "model"} {
			for key := range device.Attributes {
				if key == name {
					addresses = append(addresses, unsafe.StringData(string(key)))
				}
			}
		}
		return addresses
	}
	one, other := texts("a"), texts("b")
	for i := range one {
		if one[i] != other[i] {
			t.Errorf("text %d is not shared", i)
		}
	}
}
