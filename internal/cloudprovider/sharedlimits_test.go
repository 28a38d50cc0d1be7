// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"fmt"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Two templates that have an offering from the same catalog, or offerings of the same reservation, launch as many machines
// as there are, and not each as many.
func TestTemplatesShareLimits(t *testing.T) {
	const general, other = "general", "other"
	limited := v1alpha1.Offering{Zones: []v1alpha1.Zone{"a"}, CapacityType: "on-demand", Price: "1", MaxMachines: new(int32(2))}
	reserved := v1alpha1.Offering{Zones: []v1alpha1.Zone{"a"}, CapacityType: "reserved", Price: "1", Reservation: &v1alpha1.Reservation{ID: "cr-1", Count: 8}}
	for name, tc := range map[string]struct {
		offering v1alpha1.Offering
		own      bool // whether each template has a catalog of its own
		want     int
	}{
		"maxMachines of a catalog":            {offering: limited, want: 2},
		"a reservation in a catalog":          {offering: reserved, want: 8},
		"a reservation in two catalogs":       {offering: reserved, own: true, want: 8},
		"maxMachines of each of two catalogs": {offering: limited, own: true, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			second, copied := &v1alpha1.KarpenterMachineTemplate{}, &v1alpha1.InstanceTypeCatalog{}
			provider, api := newProviderOf(func(t *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) {
				listed.Spec.InstanceTypes = listed.Spec.InstanceTypes[:1]
				listed.Spec.InstanceTypes[0].Offerings = []v1alpha1.Offering{tc.offering}
				listed.DeepCopyInto(copied)
				copied.Name, copied.UID = "copied", "2"
				t.DeepCopyInto(second)
				second.Name, second.UID = other, "2"
				if tc.own {
					second.Spec.CatalogRefs[0].Name = copied.Name
				}
			}, copied, second)
			launched := 0
			for i := range 20 {
				claim := waiting()
				claim.Name, claim.UID = fmt.Sprintf("pool-%d", i), types.UID(fmt.Sprint(i))
				claim.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
				claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: []string{general, other}[i%2]}
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
