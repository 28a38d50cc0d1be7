// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// turns lets spot offerings take turns whose prices differ by at most 20 percent: small in the zones a, b and c and twin in
// zone a. Small in zone d costs too much for that.
func turns(template *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) {
	spot := func(zone v1alpha1.Zone, price v1alpha1.Decimal) v1alpha1.Offering {
		return v1alpha1.Offering{Zones: []v1alpha1.Zone{zone}, CapacityType: "spot", Price: price}
	}
	template.Spec.Spread = []v1alpha1.Spread{{CapacityType: "spot", MaxPriceIncreasePercent: new(int32(20))}}
	small, large := &listed.Spec.InstanceTypes[0], &listed.Spec.InstanceTypes[1]
	small.Offerings = append(small.Offerings, spot("a", "0.10"), spot("b", "0.11"), spot("c", "0.12"), spot("d", "0.13"))
	large.Offerings = append(large.Offerings, spot("a", "0.4"))
	twin := *small.DeepCopy()
	twin.Name, twin.Offerings = "twin", []v1alpha1.Offering{spot("a", "0.115")}
	listed.Spec.InstanceTypes = append(listed.Spec.InstanceTypes, twin)
}

// of returns the key of a spot offering.
func of(instanceType, zone string) catalog.Key {
	return catalog.Key{InstanceType: instanceType, Zone: zone, CapacityType: karpv1.CapacityTypeSpot}
}

// running returns claims of a NodePool that have a spot offering.
func running(pool string, key catalog.Key, count int) []client.Object {
	var claims []client.Object
	for i := range count {
		c := launched(fmt.Sprintf("%s-%s-%s-%d", pool, key.InstanceType, key.Zone, i), key.InstanceType)
		c.Labels[karpv1.NodePoolLabelKey], c.Labels[zone], c.Labels[capacityType] = pool, key.Zone, key.CapacityType
		claims = append(claims, c)
	}
	return claims
}

func TestTakeTurns(t *testing.T) {
	join := func(all ...[]client.Object) (joined []client.Object) {
		for _, some := range all {
			joined = append(joined, some...)
		}
		return joined
	}
	// failed marks the cheapest offering until a time, which can be over.
	failed := func(until time.Duration) func(*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceTypeCatalog) {
		return func(template *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) {
			turns(template, listed)
			template.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{{
				InstanceType: "small", Zone: "a", CapacityType: "spot", Reason: "Interrupted", Failures: 1, Until: metav1.NewTime(time.Now().Add(until)),
			}}
		}
	}
	one := join(running("pool", of("small", "a"), 1), running("pool", of("small", "b"), 1), running("pool", of("small", "c"), 1), running("pool", of("twin", "a"), 1))
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KarpenterMachineTemplate, *v1alpha1.InstanceTypeCatalog)
		others []client.Object
		claim  func(*karpv1.NodeClaim)
		want   catalog.Key
	}{
		"the cheapest first":              {want: of("small", "a")},
		"then the next one":               {others: running("pool", of("small", "a"), 1), want: of("small", "b")},
		"another instance type":           {others: one[:2], want: of("twin", "a")},
		"never one that costs more":       {others: join(running("pool", of("small", "a"), 2), one[1:]), want: of("small", "b")},
		"claims of another NodePool":      {others: running("other", of("small", "a"), 5), want: of("small", "a")},
		"after a failure half of a share": {change: failed(-time.Minute), others: one, want: of("small", "b")},
		"none that is unavailable":        {change: failed(time.Minute), want: of("small", "b")},
		"claims that end": {others: func() []client.Object {
			ending := running("pool", of("small", "a"), 3)
			for _, claim := range ending {
				claim.SetDeletionTimestamp(new(metav1.Now()))
				claim.SetFinalizers([]string{karpv1.TerminationFinalizer})
			}
			return ending
		}(), want: of("small", "a")},
		"the zone that the claim requires": {others: running("pool", of("small", "b"), 9), claim: func(c *karpv1.NodeClaim) {
			c.Spec.Requirements = claim("1", "1Gi", zone+"=b").Spec.Requirements
		}, want: of("small", "b")},
		"the zone that the claim requires, also if it costs more": {claim: func(c *karpv1.NodeClaim) {
			c.Spec.Requirements = claim("1", "1Gi", zone+"=d").Spec.Requirements
		}, want: of("small", "d")},
		"the only one that is large enough": {others: running("pool", of("large", "a"), 9), claim: func(c *karpv1.NodeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("4")
		}, want: of("large", "a")},
		"a capacity type without turns": {claim: func(c *karpv1.NodeClaim) {
			c.Spec.Requirements = claim("1", "1Gi", capacityType+"=on-demand").Spec.Requirements
		}, want: catalog.Key{InstanceType: "small", Zone: "a", CapacityType: "on-demand"}},
		"reserved capacity first": {change: func(template *v1alpha1.KarpenterMachineTemplate, listed *v1alpha1.InstanceTypeCatalog) {
			reserve(1)(template, listed)
			turns(template, listed)
		}, want: catalog.Key{InstanceType: "large", Zone: "a", CapacityType: "reserved"}},
	} {
		t.Run(name, func(t *testing.T) {
			change := tc.change
			if change == nil {
				change = turns
			}
			provider, _ := newProviderOf(change, tc.others...)
			c := waiting()
			if tc.claim != nil {
				tc.claim(c)
			}
			created, err := provider.Create(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if got := catalog.KeyOf(created); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// Claims of a burst take turns before the cache has the first decision. A claim about which Create decides again has one turn.
func TestABurstTakesTurns(t *testing.T) {
	var claims []client.Object
	named := func(i int) *karpv1.NodeClaim {
		c := waiting()
		c.Name, c.UID = fmt.Sprintf("pool-%d", i), types.UID(fmt.Sprint(i))
		return c
	}
	for i := range 23 {
		claims = append(claims, named(i))
	}
	provider, _ := newProviderOf(turns, claims...)
	got := map[catalog.Key]int{}
	for i := range claims {
		for range 2 {
			created, err := provider.Create(t.Context(), named(i))
			if err != nil {
				t.Fatal(err)
			}
			key := catalog.KeyOf(created)
			if price := created.Annotations[v1alpha1.PriceAnnotation]; key == of("small", "b") && price != "0.11" {
				t.Errorf("%s has the price %s, want what is paid", key, price)
			}
			got[key]++
		}
	}
	// In proportion to 1/0.10, 1/0.11, 1/0.12 and 1/0.115.
	want := map[catalog.Key]int{of("small", "a"): 2 * 6, of("small", "b"): 2 * 6, of("small", "c"): 2 * 5, of("twin", "a"): 2 * 6}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
