// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"unique"

	"github.com/samber/lo"
	resourcev1 "k8s.io/api/resource/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SliceNodeField is the Node whose devices a ResourceSlice has.
const SliceNodeField = "spec.nodeName"

// IndexDevices adds the fields of ResourceSlices to the cache of the workload cluster. Their API must be served.
func IndexDevices(ctx context.Context, indexer client.FieldIndexer) error {
	return index(ctx, indexer, field{&resourcev1.ResourceSlice{}, SliceNodeField, func(o client.Object) string {
		return lo.FromPtr(o.(*resourcev1.ResourceSlice).Spec.NodeName)
	}})
}

// StripSlices returns the transform of ResourceSlices in the cache, of which each Node has some. It removes what neither core nor
// this operator reads, and keeps equal texts, such as the names of attributes, only once.
func StripSlices() toolscache.TransformFunc {
	return func(in any) (any, error) {
		slice, is := in.(*resourcev1.ResourceSlice)
		if !is {
			return in, nil // It is a tombstone.
		}
		slice.ManagedFields, slice.Labels, slice.Annotations = nil, nil, nil
		slice.Spec.Driver = once(slice.Spec.Driver)
		for i := range slice.Spec.Devices {
			stripDevice(&slice.Spec.Devices[i])
		}
		return slice, nil
	}
}

func stripDevice(device *resourcev1.Device) {
	device.Taints, device.BindingConditions, device.BindingFailureConditions, device.NodeAllocatableResourceMappings = nil, nil, nil, nil
	device.Name = once(device.Name)
	device.Attributes = lo.MapEntries(device.Attributes, func(name resourcev1.QualifiedName, a resourcev1.DeviceAttribute) (resourcev1.QualifiedName, resourcev1.DeviceAttribute) {
		for _, text := range []*string{a.StringValue, a.VersionValue} {
			if text != nil {
				*text = once(*text)
			}
		}
		return once(name), a
	})
	device.Capacity = lo.MapKeys(device.Capacity, func(_ resourcev1.DeviceCapacity, name resourcev1.QualifiedName) resourcev1.QualifiedName {
		return once(name)
	})
	for i := range device.ConsumesCounters {
		consumed := &device.ConsumesCounters[i]
		consumed.CounterSet = once(consumed.CounterSet)
		consumed.Counters = lo.MapKeys(consumed.Counters, func(_ resourcev1.Counter, name string) string { return once(name) })
	}
}

// once returns an equal text, which all equal texts share.
func once[T ~string](text T) T { return unique.Make(text).Value() }
