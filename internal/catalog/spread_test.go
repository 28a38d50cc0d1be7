// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// pricesOfBuilt returns what core compares, by offering.
func pricesOfBuilt(instanceTypes []*cloudprovider.InstanceType) map[string]float64 {
	prices := map[string]float64{}
	for _, it := range instanceTypes {
		for _, o := range it.Offerings {
			prices[Key{InstanceType: it.Name, Zone: o.Zone(), CapacityType: o.CapacityType()}.String()] = o.Price
		}
	}
	return prices
}

func spreadOver(capacityType v1alpha1.SpreadCapacityType, percent int32) v1alpha1.Spread {
	return v1alpha1.Spread{CapacityType: capacityType, MaxPriceIncreasePercent: &percent}
}

func TestSpreadPrices(t *testing.T) {
	offering := func(zone v1alpha1.Zone, capacityType v1alpha1.CapacityType, price v1alpha1.Decimal) v1alpha1.Offering {
		return v1alpha1.Offering{Zones: []v1alpha1.Zone{zone}, CapacityType: capacityType, Price: price}
	}
	given := []v1alpha1.InstanceType{
		{Name: "m6i", Capacity: list("cpu", "4", "memory", "16Gi"), Offerings: []v1alpha1.Offering{
			offering("a", "spot", "0.10"), offering("b", "spot", "0.11"), offering("a", "on-demand", "0.20"), offering("b", "on-demand", "0.20"),
			{Zones: []v1alpha1.Zone{"a"}, CapacityType: "reserved", Price: "0.0001", Reservation: &v1alpha1.Reservation{ID: "cr-1", Count: 1}},
		}},
		{Name: "m7i", Capacity: list("cpu", "4", "memory", "16Gi"), Offerings: []v1alpha1.Offering{
			offering("a", "spot", "0.12"), offering("b", "spot", "0.13"), offering("a", "on-demand", "0.21"),
		}},
		{Name: "small", Capacity: list("cpu", "2", "memory", "8Gi"), Offerings: []v1alpha1.Offering{offering("a", "spot", "0.09"), offering("b", "spot", "0.095")}},
	}
	unchanged := map[string]float64{
		"m6i/a/spot": 0.10, "m6i/b/spot": 0.11, "m6i/a/on-demand": 0.20, "m6i/b/on-demand": 0.20, "m6i/a/reserved": 0.0001,
		"m7i/a/spot": 0.12, "m7i/b/spot": 0.13, "m7i/a/on-demand": 0.21, "small/a/spot": 0.09, "small/b/spot": 0.095,
	}
	for name, tc := range map[string]struct {
		spread []v1alpha1.Spread
		want   map[string]float64 // only what is not as in unchanged
	}{
		"none": {},
		"spot, for each size": {
			spread: []v1alpha1.Spread{spreadOver("spot", 20)},
			want:   map[string]float64{"m6i/b/spot": 0.10, "m7i/a/spot": 0.10, "small/b/spot": 0.09},
		},
		"spot, all of them": {
			spread: []v1alpha1.Spread{spreadOver("spot", 30)},
			want:   map[string]float64{"m6i/b/spot": 0.10, "m7i/a/spot": 0.10, "m7i/b/spot": 0.10, "small/b/spot": 0.09},
		},
		"only equal prices": {spread: []v1alpha1.Spread{spreadOver("on-demand", 0), spreadOver("spot", 0)}},
		"on demand": {
			spread: []v1alpha1.Spread{spreadOver("on-demand", 5)},
			want:   map[string]float64{"m7i/a/on-demand": 0.20},
		},
	} {
		t.Run(name, func(t *testing.T) {
			input := template("types")
			input.Spec.Spread = tc.spread
			built, err := build(input, given...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(merged(unchanged, tc.want), pricesOfBuilt(built)); diff != "" {
				t.Errorf("prices that Karpenter compares (-want +got):\n%s", diff)
			}
		})
	}
}

// What core compares stays the same while the cheapest offering is unavailable. Otherwise, core would replace Nodes when it is
// available again. What is paid for an offering is known nevertheless.
func TestSpreadPricesDoNotDependOnFailures(t *testing.T) {
	instanceType := m5large()
	instanceType.Offerings = []v1alpha1.Offering{
		{Zones: []v1alpha1.Zone{"a"}, CapacityType: "spot", Price: "0.030"}, {Zones: []v1alpha1.Zone{"b"}, CapacityType: "spot", Price: "0.033"},
	}
	input := template("types")
	input.Spec.Spread = []v1alpha1.Spread{spreadOver("spot", 20)}
	c, _ := newWorld(t, listed(instanceType))
	want := map[string]float64{"m5.large/a/spot": 0.030, "m5.large/b/spot": 0.030}
	for _, available := range []int{2, 1} {
		instanceTypes, err := c.InstanceTypes(t.Context(), input, began)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, pricesOfBuilt(instanceTypes)); diff != "" {
			t.Errorf("prices that Karpenter compares (-want +got):\n%s", diff)
		}
		if got := len(instanceTypes[0].Offerings.Available()); got != available {
			t.Errorf("%d offerings are available, want %d", got, available)
		}
		input.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{{
			InstanceType: "m5.large", Zone: "a", CapacityType: "spot", Reason: "Interrupted", Failures: 1, Until: metav1.NewTime(began.Add(time.Minute)),
		}}
	}
	paid, err := c.Paid(t.Context(), input, []Key{{"m5.large", "b", "spot"}, {"m5.large", "a", "spot"}, {"m5.large", "c", "spot"}, {"none", "a", "spot"}})
	if diff := cmp.Diff([]float64{0.033, 0.030, 0, 0}, paid); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
