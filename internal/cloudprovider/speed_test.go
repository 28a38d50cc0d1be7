// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// cached reads each object and each list once, and then copies it as the cache of controller-runtime does.
type cached struct {
	client.Client
	known map[string]any
}

func (c *cached) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	name := fmt.Sprintf("%T %s %s", into, into.GetObjectKind().GroupVersionKind(), key)
	if c.known[name] == nil {
		read := into.DeepCopyObject().(client.Object)
		if err := c.Client.Get(ctx, key, read); err != nil {
			return err
		}
		c.known[name] = read
	}
	found := c.known[name].(client.Object)
	if !lo.FromPtr((&client.GetOptions{}).ApplyOptions(options).UnsafeDisableDeepCopy) {
		found = found.DeepCopyObject().(client.Object)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found).Elem())
	return nil
}

func (c *cached) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	given := (&client.ListOptions{}).ApplyOptions(options)
	name := fmt.Sprintf("%T %v %v %s", into, given.FieldSelector, given.LabelSelector, given.Namespace)
	if c.known[name] == nil {
		read := into.DeepCopyObject().(client.ObjectList)
		if err := c.Client.List(ctx, read, options...); err != nil {
			return err
		}
		c.known[name] = read
	}
	found := c.known[name].(client.ObjectList)
	if !lo.FromPtr(given.UnsafeDisableDeepCopy) {
		found = found.DeepCopyObject().(client.ObjectList)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found).Elem())
	return nil
}

// BenchmarkCloudProvider measures what Karpenter calls for each NodePool and NodeClaim, with 100 instance types and a status
// with marks.
func BenchmarkCloudProvider(b *testing.B) {
	w := newDriftWorldOf(b, func(template *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) {
		small := listed.Spec.InstanceTypes[0]
		for i := range 98 {
			other := *small.DeepCopy()
			other.Name = fmt.Sprintf("type-%d", i)
			other.Offerings[0].Price = "1"
			listed.Spec.InstanceTypes = append(listed.Spec.InstanceTypes, other)
			template.Status.UnavailableOfferings = append(template.Status.UnavailableOfferings, v1alpha1.UnavailableOffering{
				InstanceType: other.Name, Zone: "a", CapacityType: "on-demand", Reason: "x", Message: "none left", Until: metav1.NewTime(time.Now().Add(time.Hour)),
			})
		}
	})
	both := fixture.Cluster{Client: &cached{w.Client, map[string]any{}}}
	w.provider.clusters.Workload, w.provider.clusters.Management = both, both
	pool, claim := &karpv1.NodePool{}, waiting()
	pool.Spec.Template.Spec.NodeClassRef = nodeClassRef
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.TemplateLabel: "general"}}}
	for name, call := range map[string]func() error{
		"Create":           func() error { _, err := w.provider.Create(b.Context(), claim); return err },
		"GetInstanceTypes": func() error { _, err := w.provider.GetInstanceTypes(b.Context(), pool); return err },
		"IsDrifted":        func() error { _, err := w.provider.IsDrifted(b.Context(), w.claim); return err },
		"whyNotSpare":      func() error { _, _, err := w.provider.whyNotSpare(b.Context(), w.claim, machine); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
