// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// largestObject is the limit of etcd for a request.
const largestObject = 3 << 19

// A catalog of 1,000 types with 9 offerings each can be applied on the server side, and applied again with another
// price. A quarter of what etcd accepts is left for longer names.
func TestApplyALargeCatalog(t *testing.T) {
	spec := v1alpha1.InstanceTypeCatalogSpec{Source: "aws us-east-1, 2026-11-20", Currency: "USD"}
	zones := []v1alpha1.Zone{"us-east-1a", "us-east-1b", "us-east-1c"}
	for i := range 1000 {
		labels := map[string]v1alpha1.LabelValue{"kubernetes.io/arch": "arm64", "topology.kubernetes.io/region": "us-east-1"}
		for _, label := range v1alpha1.SettableLabels {
			labels[label] = "value"
		}
		spec.InstanceTypes = append(spec.InstanceTypes, v1alpha1.InstanceType{
			Name: fmt.Sprintf("m%d.16xlarge", i), Labels: labels, Price: "12.3456",
			Capacity: map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse("64"), "memory": resource.MustParse("237568Mi"), "pods": resource.MustParse("737"), "ephemeral-storage": resource.MustParse("20Gi")},
			Offerings: []v1alpha1.Offering{
				{Zones: zones, CapacityType: "on-demand"}, {Zones: zones, CapacityType: "spot", Price: "4.5678"},
				{Zones: zones, CapacityType: "reserved", Reservation: &v1alpha1.Reservation{ID: "cr-0a1b2c3d4e5f67890", Count: 8}},
			},
		})
	}
	apply := func() string {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.CatalogKind))
		object.SetName("large")
		// The API server gives up on a request after 34 s, which a busy machine can need (k8s.io/apiserver:
		// pkg/endpoints/handlers/rest.go, requestTimeoutUpperBound).
		err = retry.OnError(retry.DefaultRetry, apierrors.IsTimeout, func() error {
			return apiServer.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"))
		})
		if err != nil {
			t.Fatal(err)
		}
		return object.GetResourceVersion()
	}
	first := apply()
	if again := apply(); again != first {
		t.Errorf("applying the same again changes the object from version %s to %s", first, again)
	}
	spec.InstanceTypes[0].Price = "1"
	if changed := apply(); changed == first {
		t.Error("another price changes nothing")
	}
	stored := &v1alpha1.InstanceTypeCatalog{}
	if err := apiServer.Get(t.Context(), client.ObjectKey{Name: "large"}, stored); err != nil {
		t.Fatal(err)
	}
	if len(stored.Spec.InstanceTypes) != len(spec.InstanceTypes) || stored.Spec.InstanceTypes[0].Price != "1" {
		t.Errorf("got %d instance types, the first one for %s", len(stored.Spec.InstanceTypes), stored.Spec.InstanceTypes[0].Price)
	}
	content, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d KiB", len(content)>>10)
	if len(content) > largestObject*3/4 {
		t.Errorf("the catalog has %d bytes of at most %d", len(content), largestObject)
	}
	if err := apiServer.Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
}
