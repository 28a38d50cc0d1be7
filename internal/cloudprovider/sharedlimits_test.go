// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Two templates that have an offering from the same catalog, or offerings of the same reservation, launch as many machines
// as there are, and not each as many.
func TestTemplatesShareLimits(t *testing.T) {
	ofCatalog := func(t *v1alpha1.KarpenterMachineTemplate) {
		t.Spec.InstanceTypes, t.Spec.CatalogRefs = nil, []v1alpha1.CatalogReference{{Name: "metal"}}
	}
	limited := v1alpha1.Offering{Zones: []v1alpha1.Zone{"a"}, CapacityType: "on-demand", Price: "1", MaxMachines: new(int32(2))}
	reserved := v1alpha1.Offering{Zones: []v1alpha1.Zone{"a"}, CapacityType: "reserved", Price: "1", Reservation: &v1alpha1.Reservation{ID: "cr-1", Count: 8}}
	itself := func(offering v1alpha1.Offering) func(*v1alpha1.KarpenterMachineTemplate) {
		return func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Spec.InstanceTypes = t.Spec.InstanceTypes[:1]
			t.Spec.InstanceTypes[0].Offerings = []v1alpha1.Offering{offering}
		}
	}
	for name, tc := range map[string]struct {
		offering v1alpha1.Offering // of the catalog
		change   func(*v1alpha1.KarpenterMachineTemplate)
		want     int
	}{
		"maxMachines of a catalog":             {offering: limited, change: ofCatalog, want: 2},
		"a reservation in a catalog":           {offering: reserved, change: ofCatalog, want: 8},
		"a reservation that each template has": {change: itself(reserved), want: 8},
		"maxMachines that each template has":   {change: itself(limited), want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			metal := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "metal"}}
			metal.Spec.InstanceTypes = []v1alpha1.InstanceType{{
				Name: "small", Capacity: map[corev1.ResourceName]resource.Quantity{"cpu": resource.MustParse("2"), "memory": resource.MustParse("16Gi")}, Offerings: []v1alpha1.Offering{tc.offering},
			}}
			other := &v1alpha1.KarpenterMachineTemplate{}
			provider, api := newProvider(func(t *v1alpha1.KarpenterMachineTemplate) {
				tc.change(t)
				t.DeepCopyInto(other)
				other.Name, other.UID = "other", "2"
			}, metal, other)
			launched := 0
			for i := range 20 {
				claim := waiting()
				claim.Name, claim.UID = fmt.Sprintf("pool-%d", i), types.UID(fmt.Sprint(i))
				claim.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
				claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: []string{"general", "other"}[i%2]}
				created, err := provider.Create(t.Context(), claim)
				if cloudprovider.IsInsufficientCapacityError(err) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				launched++
				claim.Annotations = created.Annotations
				maps.Copy(claim.Labels, created.Labels)
				if err := api.Create(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
			}
			if launched != tc.want {
				t.Errorf("launched %d machines, want %d", launched, tc.want)
			}
		})
	}
}
