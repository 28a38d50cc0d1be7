// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

// limitedTypes returns one offering with a limit, one without, and two of one reservation.
func limitedTypes() []Type {
	reservation := &v1alpha1.Reservation{ID: "cr-1", Count: 2}
	return []Type{{Name: "m5", Offerings: []Offering{
		{Zone: "a", CapacityType: "on-demand", MaxMachines: new(int32(2))},
		{Zone: "b", CapacityType: "on-demand"},
		{Zone: "a", CapacityType: "reserved", Reservation: reservation},
		{Zone: "b", CapacityType: "reserved", Reservation: &v1alpha1.Reservation{ID: "cr-1", Count: 5}},
	}}}
}

var (
	limited   = Key{"m5", "a", "on-demand"}
	unlimited = Key{"m5", "b", "on-demand"}
	reservedA = Key{"m5", "a", "reserved"}
	reservedB = Key{"m5", "b", "reserved"}
)

// claims returns one claim for each key, each a second younger than the one before.
func claims(keys ...Key) []karpv1.NodeClaim {
	var result []karpv1.NodeClaim
	for i, key := range keys {
		c := nodeClaim(fmt.Sprintf("c%02d", i), key)
		c.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
		result = append(result, *c)
	}
	return result
}

func TestUsage(t *testing.T) {
	waiting := *nodeClaim("waiting", limited)
	waiting.Annotations = nil
	for name, tc := range map[string]struct {
		max        *int32
		types      func([]Type)
		claims     []karpv1.NodeClaim
		wantFull   []Key
		wantStatus []v1alpha1.LimitedOffering
	}{
		"nothing in use": {},
		"below the limit": {claims: claims(limited, unlimited, unlimited), wantStatus: []v1alpha1.LimitedOffering{
			{InstanceType: "m5", Zone: "a", CapacityType: "on-demand", NodeClaims: 1, Limit: 2},
		}},
		"at the limit": {claims: claims(limited, limited), wantFull: []Key{limited}, wantStatus: []v1alpha1.LimitedOffering{
			{InstanceType: "m5", Zone: "a", CapacityType: "on-demand", NodeClaims: 2, Limit: 2},
		}},
		"one that was not launched does not count": {claims: append(claims(limited), waiting), wantStatus: []v1alpha1.LimitedOffering{
			{InstanceType: "m5", Zone: "a", CapacityType: "on-demand", NodeClaims: 1, Limit: 2},
		}},
		"a reservation is one count, the smallest": {claims: claims(reservedA, reservedB), wantFull: []Key{reservedA, reservedB}, wantStatus: []v1alpha1.LimitedOffering{
			{InstanceType: "m5", Zone: "a", CapacityType: "reserved", NodeClaims: 2, Limit: 2},
			{InstanceType: "m5", Zone: "b", CapacityType: "reserved", NodeClaims: 2, Limit: 2},
		}},
		"a reservation is one count, in any order": {types: func(types []Type) { slices.Reverse(types[0].Offerings) }, claims: claims(reservedA, reservedB), wantFull: []Key{reservedA, reservedB}, wantStatus: []v1alpha1.LimitedOffering{
			{InstanceType: "m5", Zone: "a", CapacityType: "reserved", NodeClaims: 2, Limit: 2},
			{InstanceType: "m5", Zone: "b", CapacityType: "reserved", NodeClaims: 2, Limit: 2},
		}},
		"the template's limit": {max: new(int32(1)), claims: claims(unlimited), wantFull: []Key{limited, unlimited, reservedA, reservedB}},
	} {
		t.Run(name, func(t *testing.T) {
			input := template()
			input.Spec.MaxMachines = tc.max
			types := limitedTypes()
			if tc.types != nil {
				tc.types(types)
			}
			usage := LimitsOf(input, types).Use(tc.claims)
			var full []Key
			for _, key := range []Key{limited, unlimited, reservedA, reservedB} {
				if usage.Full(key) {
					full = append(full, key)
				}
			}
			if diff := cmp.Diff(tc.wantFull, full); diff != "" {
				t.Errorf("full (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantStatus, usage.Status()); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
	full := template()
	full.Spec.MaxMachines = new(int32(1))
	if LimitsOf(full, nil).None() || !LimitsOf(template(), []Type{{Name: "m5", Offerings: []Offering{{}}}}).None() || LimitsOf(template(), limitedTypes()).None() {
		t.Error("None is wrong")
	}
}

// The status has the limited offerings in order. If there is no room for all, it has those that are closest to their
// limit, and of others the first ones.
func TestStatusOfManyLimits(t *testing.T) {
	var types []Type
	var given []karpv1.NodeClaim
	var near, far []string
	for name := range 50 {
		instanceType := Type{Name: fmt.Sprintf("type-%02d", name)}
		for _, capacityType := range []string{"spot", "on-demand"} {
			for _, zone := range []string{"zone-c", "zone-b", "zone-a"} {
				key, limit := Key{instanceType.Name, zone, capacityType}, int32(len(given)%2)+2
				instanceType.Offerings = append(instanceType.Offerings, Offering{Zone: zone, CapacityType: capacityType, MaxMachines: &limit})
				given = append(given, *nodeClaim(key.String(), key))
				*lo.Ternary(limit == 2, &near, &far) = append(*lo.Ternary(limit == 2, &near, &far), key.String())
			}
		}
		types = append(types, instanceType)
	}
	slices.Sort(far)
	for name, count := range map[string]int{"there is room for all": 20, "there is no room for all": len(types)} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, entry := range LimitsOf(template(), types[:count]).Use(given).Status() {
				got = append(got, Key{entry.InstanceType, entry.Zone, entry.CapacityType}.String())
			}
			want := slices.Concat(near[:3*count], far[:len(got)-3*count])
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" || (len(got) == 6*count) != (count == 20) || len(got) < 3*count+9 {
				t.Errorf("got %d of %d offerings (-want +got):\n%s", len(got), 6*count, diff)
			}
		})
	}
}

// Only a limit or reservation that other templates can use makes their NodeClaims count.
func TestLimitsThatNeedAllNodeClaims(t *testing.T) {
	limited := Offering{Zone: "a", MaxMachines: new(int32(1))}
	ofCatalog, reserved := limited, Offering{Zone: "b", Reservation: &v1alpha1.Reservation{ID: "cr-1", Count: 1}}
	ofCatalog.Limiter, ofCatalog.Zone = &Limiter{Catalog: "metal"}, "c"
	for name, tc := range map[string]struct {
		offerings []Offering
		want      bool
	}{
		"none":                        {[]Offering{{}}, false},
		"a limit of its own":          {[]Offering{limited}, false},
		"a limit of a catalog":        {[]Offering{ofCatalog, limited}, true},
		"a reservation":               {[]Offering{reserved, limited}, true},
		"a limit, and one of its own": {[]Offering{limited, ofCatalog}, true},
	} {
		if got := LimitsOf(template(), []Type{{Name: "m5", Offerings: tc.offerings}}).shared; got != tc.want {
			t.Errorf("%s: the NodeClaims of all templates count: %t, want %t", name, got, tc.want)
		}
	}
}

// A NodeClaim counts as soon as it has an offering: the annotation is written before the condition.
func TestLaunched(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*karpv1.NodeClaim)
		want   bool
	}{
		"with the annotation": {func(*karpv1.NodeClaim) {}, true},
		"with the condition": {func(c *karpv1.NodeClaim) {
			c.Annotations = nil
			c.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
		}, true},
		"with neither": {func(c *karpv1.NodeClaim) { c.Annotations = nil }, false},
		"with a condition that fails": {func(c *karpv1.NodeClaim) {
			c.Annotations = nil
			c.StatusConditions().SetFalse(karpv1.ConditionTypeLaunched, "x", "x")
		}, false},
		"without an offering": {func(c *karpv1.NodeClaim) { c.Labels = nil }, false},
	} {
		claim := nodeClaim("a", limited)
		if tc.change(claim); Launched(claim) != tc.want {
			t.Errorf("%s: launched: %t, want %t", name, Launched(claim), tc.want)
		}
	}
}

func TestExceeding(t *testing.T) {
	waiting := claims(limited, limited, limited)
	waiting[0].Annotations = nil
	sameTime := claims(limited, limited, limited)
	for i := range sameTime {
		sameTime[i].CreationTimestamp = metav1.Time{}
	}
	for name, tc := range map[string]struct {
		max    *int32
		claims []karpv1.NodeClaim
		want   []types.UID
	}{
		"none":                          {claims: claims(limited, limited, unlimited)},
		"the youngest":                  {claims: claims(limited, limited, unlimited, limited), want: []types.UID{"c03"}},
		"of one time the last by name":  {claims: sameTime, want: []types.UID{"c02"}},
		"of a reservation in two zones": {claims: claims(reservedA, reservedB, reservedA, reservedB), want: []types.UID{"c02", "c03"}},
		"none, if one was not launched": {claims: waiting},
		"of the template":               {max: new(int32(2)), claims: claims(unlimited, unlimited, unlimited), want: []types.UID{"c02"}},
		"one over its own limit uses up none of the template's": {
			max: new(int32(3)), claims: claims(limited, limited, limited, unlimited, unlimited), want: []types.UID{"c02", "c04"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			input := template()
			input.Spec.MaxMachines = tc.max
			slices.Reverse(tc.claims)
			if got := Exceeding(tc.claims, LimitsOf(input, limitedTypes())); !got.Equal(sets.New(tc.want...)) {
				t.Errorf("got %v, want %v", sets.List(got), tc.want)
			}
		})
	}
}

func TestWhatDoesNotExceedIsWithinAllLimits(t *testing.T) {
	property.Check(t, 3000, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.SampledFrom([]Key{limited, unlimited, reservedA, reservedB}), 0, 19).Draw(t, "claims")
		given := claims(keys...)
		for i := range given {
			given[i].Name = fmt.Sprintf("c%02d", i)
			given[i].UID = types.UID(given[i].Name)
			given[i].CreationTimestamp = metav1.NewTime(time.Unix(rapid.Int64Range(0, 2).Draw(t, given[i].Name+" created"), 0))
		}
		input := template()
		if rapid.Bool().Draw(t, "limited") {
			input.Spec.MaxMachines = new(rapid.Int32Range(0, 9).Draw(t, "maxMachines"))
		}
		limits := LimitsOf(input, limitedTypes())
		exceeding := Exceeding(given, limits)
		order := rapid.Permutation(lo.Range(len(given))).Draw(t, "another order")
		shuffled := lo.Map(order, func(i, _ int) karpv1.NodeClaim { return given[i] })
		if !Exceeding(shuffled, limits).Equal(exceeding) {
			t.Fatal("the answer depends on the order")
		}
		kept := slices.DeleteFunc(slices.Clone(given), func(c karpv1.NodeClaim) bool { return exceeding.Has(c.UID) })
		if len(Exceeding(kept, limits)) > 0 {
			t.Fatal("what is kept exceeds")
		}
		usage := limits.Use(kept)
		for i := range given {
			// A claim that exceeds a limit would not fit in addition to those that are kept.
			if exceeding.Has(given[i].UID) && !usage.Full(KeyOf(&given[i])) {
				t.Fatalf("%s exceeds, and there is room", given[i].Name)
			}
		}
		if usage.offerings[limited] > 2 || usage.reservations["cr-1"] > 2 {
			t.Fatalf("a limit is exceeded: %+v", usage)
		}
	})
}

// Which claims of other templates count toward the limit of an offering that the template takes from an object.
func TestLimitsThatTemplatesShare(t *testing.T) {
	key := Key{"m5", "a", "on-demand"}
	group := "infrastructure.cluster.x-k8s.io"
	ofCatalog := &Limiter{Catalog: "metal"}
	discovered := &Limiter{APIGroup: group, Kind: "MetalMachineTemplate", Labels: map[string]string{"rack": "1"}}
	refers := func(names ...string) func(*v1alpha1.KarpenterMachineTemplateSpec) {
		return func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			for _, name := range names {
				s.CatalogRefs = append(s.CatalogRefs, v1alpha1.CatalogReference{Name: name})
			}
		}
	}
	discovers := func(kind string, selected map[string]string) func(*v1alpha1.KarpenterMachineTemplateSpec) {
		return func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.Discovery = &v1alpha1.Discovery{InfrastructureTemplates: &v1alpha1.InfrastructureTemplateDiscovery{APIGroup: group, Kind: kind, Selector: metav1.LabelSelector{MatchLabels: selected}}}
		}
	}
	for name, tc := range map[string]struct {
		limiter *Limiter
		other   func(*v1alpha1.KarpenterMachineTemplateSpec)
		want    bool
	}{
		"the same catalog":                         {ofCatalog, refers("aws", "metal"), true},
		"another catalog":                          {ofCatalog, refers("aws"), false},
		"the same infrastructure template":         {discovered, discovers("MetalMachineTemplate", map[string]string{"rack": "1"}), true},
		"all infrastructure templates":             {discovered, discovers("MetalMachineTemplate", nil), true},
		"other infrastructure templates":           {discovered, discovers("MetalMachineTemplate", map[string]string{"rack": "2"}), false},
		"infrastructure templates of another kind": {discovered, discovers("AWSMachineTemplate", nil), false},
		"the same kind of another group": {discovered, func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			discovers("MetalMachineTemplate", nil)(s)
			s.Discovery.InfrastructureTemplates.APIGroup = "other.example.com"
		}, false},
		"MachineDeployments": {discovered, func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
		}, false},
		"no discovery":       {discovered, refers("metal"), false},
		"a limit of its own": {nil, refers("metal"), false},
	} {
		t.Run(name, func(t *testing.T) {
			other := template()
			other.Name = "other"
			tc.other(&other.Spec)
			limits := LimitsOf(template(), []Type{{Name: "m5", Offerings: []Offering{{Zone: "a", CapacityType: "on-demand", MaxMachines: new(int32(2)), Limiter: tc.limiter}}}})
			limits.others = map[string]*v1alpha1.KarpenterMachineTemplate{"general": template(), "other": other}
			given := claims(key, key, key, key) // the last one is younger, and of this template
			for i := range given[:3] {
				given[i].Spec.NodeClassRef.Name = "other"
			}
			usage := limits.Use(given[:3])
			if usage.Full(key) != tc.want || usage.Total() != 0 {
				t.Errorf("full: %t with %d claims of its own, want %t", usage.Full(key), usage.Total(), tc.want)
			}
			if got := Exceeding(given, limits); got.Has("c03") != tc.want || got.HasAny("c00", "c01", "c02") {
				t.Errorf("exceeding: %v", sets.List(got))
			}
			given[1].CreationTimestamp, given[2].CreationTimestamp = metav1.NewTime(time.Unix(60, 0)), metav1.NewTime(time.Unix(60, 0))
			if got := Exceeding(given, limits); got.Len() > 0 {
				t.Errorf("exceeding if others are younger: %v", sets.List(got))
			}
			deleted := limits
			deleted.others = nil
			if deleted.Use(given[:3]).Full(key) {
				t.Error("claims of a template that does not exist count")
			}
		})
	}
}

// All claims of a reservation count, of whatever template and offering.
func TestReservationsThatTemplatesShare(t *testing.T) {
	limits := LimitsOf(template(), limitedTypes())
	given := claims(reservedA, Key{"m6", "z", "reserved"})
	given[1].Spec.NodeClassRef.Name, given[1].Labels[v1alpha1.ReservationIDLabel] = "deleted", "cr-1"
	usage := limits.Use(given)
	if !usage.Full(reservedA) || !usage.Full(reservedB) || usage.Full(limited) || usage.Total() != 1 {
		t.Errorf("got %+v", usage)
	}
	unreserved := claims(reservedA, reservedA)
	unreserved[1].Spec.NodeClassRef.Name = "other"
	if limits.Use(unreserved).Full(reservedA) {
		t.Error("a claim of another template counts for a reservation of this one")
	}
	given[0].Labels[v1alpha1.ReservationIDLabel] = "cr-0" // its offering had another one when it was launched
	if limits.Use(given).Full(reservedA) {
		t.Error("a claim counts for a reservation that it does not use")
	}
	given = claims(reservedA, Key{"m5", "c", "reserved"}, reservedB)
	given[1].Labels[v1alpha1.ReservationIDLabel] = "cr-1" // offered no more, and its Machine still uses the reservation
	if got := Exceeding(given, limits); !limits.Use(given[:2]).Full(reservedB) || !got.Equal(sets.New[types.UID]("c02")) {
		t.Errorf("a claim whose offering no longer exists does not count for its reservation: %v exceed it", sets.List(got))
	}
}
