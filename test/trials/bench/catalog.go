// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/workload"
)

// The size of the InstanceTypeCatalog that a small run has: each type has an offering in three zones, on demand, spot
// and reserved.
const (
	listedTypes     = 1000
	listedOfferings = 9
	// listedWithin is how long the operator can take until it offers all of them.
	listedWithin = time.Minute
)

// addCatalog creates the catalog, whose instance types are as large as the one that the Pods get, and cost more. It waits until the
// template offers it.
func (t *trial) addCatalog(ctx context.Context) error {
	listed := largeCatalog()
	if err := t.Workload.Create(ctx, listed); err != nil {
		return fmt.Errorf("creating the InstanceTypeCatalog: %w", err)
	}
	general := &v1alpha1.KarpenterMachineTemplate{}
	if err := t.Workload.Get(ctx, client.ObjectKey{Name: templateName}, general); err != nil {
		return fmt.Errorf("getting the KarpenterMachineTemplate: %w", err)
	}
	before := general.DeepCopy()
	general.Spec.CatalogRefs = append(general.Spec.CatalogRefs, v1alpha1.CatalogReference{Name: listed.Name})
	if err := t.Workload.Patch(ctx, general, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patching the KarpenterMachineTemplate: %w", err)
	}
	want := int32(listedTypes*listedOfferings + t.offerings)
	return t.Await(ctx, listedWithin, "the template to offer the InstanceTypeCatalog", func(ctx context.Context) (bool, string, error) {
		if err := t.Workload.Get(ctx, client.ObjectKey{Name: templateName}, general); err != nil {
			return false, err.Error(), nil
		}
		ready := general.StatusConditions().Root().IsTrue() && general.Status.Offerings == want
		return ready, fmt.Sprintf("it has %d offerings, want %d: %+v", general.Status.Offerings, want, general.Status.Conditions), nil
	})
}

func largeCatalog() *v1alpha1.InstanceTypeCatalog {
	zones := []v1alpha1.Zone{"zone-1", "zone-2", "zone-3"}
	listed := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "large"}}
	listed.Spec.Pricing = &v1alpha1.CatalogPricing{Pricing: v1alpha1.Pricing{Factors: []v1alpha1.PriceFactor{{CapacityType: "spot", Factor: "0.4"}}}}
	listed.Spec.Offerings = []v1alpha1.Offering{
		{Zones: zones, CapacityType: "on-demand"},
		{Zones: zones, CapacityType: "spot"},
		// Karpenter would use what is reserved before the one instance type of all Pods.
		{Zones: zones, CapacityType: "reserved", Reservation: &v1alpha1.Reservation{ID: "none-left", Count: 0}},
	}
	for i := range listedTypes {
		listed.Spec.InstanceTypes = append(listed.Spec.InstanceTypes, v1alpha1.InstanceType{
			Name: fmt.Sprintf("type-%d", i), Price: v1alpha1.Decimal(fmt.Sprintf("%d.5", i+1)),
			Capacity: workload.Capacity,
			Labels:   map[string]v1alpha1.LabelValue{v1alpha1.InstanceFamilyLabel: v1alpha1.LabelValue(fmt.Sprintf("family-%d", i/10))},
		})
	}
	return listed
}
