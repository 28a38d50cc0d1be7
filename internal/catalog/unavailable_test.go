// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func failed(instanceType, zone string) v1alpha1.UnavailableOffering {
	return v1alpha1.UnavailableOffering{InstanceType: instanceType, Zone: zone, CapacityType: "spot", Reason: "InsufficientCapacity", Message: "none left"}
}

// The time for which an offering is unavailable doubles with each failure in a row.
func TestMarkUnavailable(t *testing.T) {
	var list []v1alpha1.UnavailableOffering
	now := began
	for i, want := range []time.Duration{3, 6, 12, 24, 30, 30} {
		list = MarkUnavailable(list, failed("m5", "a"), now)
		if len(list) != 1 || list[0].Failures != int32(i+1) {
			t.Fatalf("failure %d: got %+v", i+1, list)
		}
		if got := list[0].Until.Sub(now); got != want*time.Minute {
			t.Errorf("failure %d: unavailable for %s, want %s", i+1, got, want*time.Minute)
		}
		// A machine that was launched before fails, which changes nothing.
		if again := MarkUnavailable(list, failed("m5", "a"), now.Add(time.Minute)); again[0] != list[0] {
			t.Errorf("failure %d: a second one during that time changed it to %+v", i+1, again[0])
		}
		now = list[0].Until.Time
	}

	if got := MarkUnavailable(list, failed("m5", "a"), now.Add(remembered)); got[0].Failures != 1 {
		t.Errorf("a failure long after: got %d in a row, want 1", got[0].Failures)
	}
	if got := MarkUnavailable(nil, failed("m5", "a"), began.Add(1500*time.Millisecond)); !got[0].Until.Time.Equal(began.Add(minUnavailable + time.Second)) {
		t.Errorf("unavailable until %s, want whole seconds, as the API server stores them", got[0].Until)
	}
	if got := MarkUnavailable(list, failed("m5", "b"), now); len(got) != 2 || got[1].Failures != 1 || got[0].Failures != 6 {
		t.Errorf("another zone: got %+v", got)
	}
	long := failed("m5", "b")
	long.Message = strings.Repeat("ä", 5000)
	if got := MarkUnavailable(nil, long, now)[0].Message; got != strings.Repeat("ä", budget.Mark/2) {
		t.Errorf("a long message has %d bytes, want %d", len(got), budget.Mark)
	}
	list = nil
	for i := range maxUnavailableOfferings + 5 {
		list = MarkUnavailable(list, v1alpha1.UnavailableOffering{InstanceType: fmt.Sprint(i)}, began)
	}
	if first := maxUnavailableOfferings + 5 - len(list); list[0].InstanceType != fmt.Sprint(first) {
		t.Errorf("got %d offerings from %s on, want the last ones", len(list), list[0].InstanceType)
	}
}

// The status has room for the marks of any number of offerings. It leaves out first
// offerings that can be chosen again, then messages, and then those that can be chosen again soonest.
func TestMarksFit(t *testing.T) {
	message := strings.Repeat("x", 1000)
	mark := func(list []v1alpha1.UnavailableOffering, from, to int, now time.Time) []v1alpha1.UnavailableOffering {
		for i := from; i < to; i++ {
			list = MarkUnavailable(list, v1alpha1.UnavailableOffering{
				InstanceType: fmt.Sprintf("type-%04d.metal", i), Zone: "us-east-1a", CapacityType: "on-demand", Reason: "InsufficientCapacity", Message: message,
			}, now)
		}
		if size := budget.Size(list); size > budget.Unavailable {
			t.Errorf("%d marks have %d bytes, want at most %d", len(list), size, budget.Unavailable)
		}
		return list
	}
	withMessage := func(list []v1alpha1.UnavailableOffering) int {
		return lo.CountBy(list, func(o v1alpha1.UnavailableOffering) bool { return o.Message != "" })
	}
	now := began
	list := mark(nil, 0, 150, now)
	if len(list) != 150 || withMessage(list) != 150 {
		t.Fatalf("got %d marks, %d with a message, want all 150", len(list), withMessage(list))
	}
	now = now.Add(minUnavailable)
	list = mark(list, 150, 500, now)
	if got := len(Unavailable(list, now)); got != 350 || len(list) >= 500 || withMessage(list) < 50 || list[len(list)-1].Message == "" {
		t.Fatalf("got %d marks, %d in force, %d with a message, want all 350 in force", len(list), got, withMessage(list))
	}
	if size := budget.Size(list); size < budget.Unavailable-2*budget.Mark {
		t.Errorf("%d marks have %d bytes of %d, although more messages fit", len(list), size, budget.Unavailable)
	}
	list = mark(list, 500, 1000, now.Add(time.Second))
	for _, o := range list[len(list)-500:] {
		if o.InstanceType < "type-0500.metal" {
			t.Fatalf("%s is kept, want the last 500", o.InstanceType)
		}
	}
	if !slices.IsSortedFunc(list, func(a, b v1alpha1.UnavailableOffering) int { return strings.Compare(a.InstanceType, b.InstanceType) }) {
		t.Error("the order has changed")
	}
}

// No offering is left out that stays closed longer, or could be chosen later, than one that is kept, whatever their sizes
// and order.
func TestMarksThatEndLastAreKept(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	var list []v1alpha1.UnavailableOffering
	for i := range 900 {
		list = append(list, v1alpha1.UnavailableOffering{
			InstanceType: fmt.Sprintf("type-%04d", i), Zone: strings.Repeat("z", random.Intn(60)), CapacityType: "spot", Until: metav1.NewTime(began.Add(time.Duration(i+1) * time.Second)),
		})
	}
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for name, now := range map[string]time.Time{"all are closed": began.Add(-time.Hour), "some are closed": began.Add(10 * time.Minute), "all are open": began.Add(time.Hour)} {
		for range 10 {
			var kept []string
			for _, o := range MarkUnavailable(list, failed("m5", strings.Repeat("a", random.Intn(60))), now) {
				if o.InstanceType != "m5" {
					kept = append(kept, o.InstanceType)
				}
			}
			slices.Sort(kept)
			if len(kept) < 400 || kept[0] != fmt.Sprintf("type-%04d", 900-len(kept)) {
				t.Fatalf("%s: %d of 900 are kept from %s on, want those that end last", name, len(kept), kept[0])
			}
		}
	}
}

func TestUnavailable(t *testing.T) {
	list := MarkUnavailable(MarkUnavailable(nil, failed("m5", "a"), began), failed("m5", "b"), began.Add(time.Minute))
	for _, tc := range []struct {
		after                  time.Duration
		unavailable, remembers int
		changesIn              time.Duration
	}{
		{0, 2, 2, 3 * time.Minute},
		{3 * time.Minute, 1, 2, time.Minute},
		{4 * time.Minute, 0, 2, 29 * time.Minute},
		{33 * time.Minute, 0, 1, time.Minute},
		{34 * time.Minute, 0, 0, 0},
	} {
		now := began.Add(tc.after)
		if got := len(Unavailable(list, now)); got != tc.unavailable {
			t.Errorf("after %s: %d unavailable, want %d", tc.after, got, tc.unavailable)
		}
		if got := len(PruneUnavailable(list, now)); got != tc.remembers {
			t.Errorf("after %s: %d remembered, want %d", tc.after, got, tc.remembers)
		}
		if got := ChangesIn(list, now); got != tc.changesIn {
			t.Errorf("after %s: changes in %s, want %s", tc.after, got, tc.changesIn)
		}
	}
	if key := (Key{"m5", "b", "spot"}); !isMarked(list, key, began.Add(4*time.Minute-1)) || isMarked(list, key, began.Add(4*time.Minute)) {
		t.Error("m5/b/spot is not unavailable for the minutes of its mark")
	}
	if isMarked(list, Key{"m5", "b", "on-demand"}, began) {
		t.Error("m5/b/on-demand is unavailable, but never failed")
	}
}

func TestInstanceTypesWithoutUnavailable(t *testing.T) {
	c, _ := newWorld(t, listed(m5large()))
	template := template("types")
	const name, zone, capacityType = "m5.large", "a", "on-demand"
	available := func(c *Catalog, now time.Time) (count int) {
		instanceTypes, err := c.InstanceTypes(t.Context(), template, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, instanceType := range instanceTypes {
			for _, offering := range instanceType.Offerings {
				if offering.Available {
					count++
				}
			}
		}
		return count
	}
	all := available(c, began)
	template.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{{InstanceType: name, Zone: zone, CapacityType: capacityType, Until: metav1.NewTime(began.Add(time.Minute))}}
	if got := available(c, began); got != all-1 {
		t.Errorf("with one that failed: %d are available, want %d", got, all-1)
	}
	first, _ := c.InstanceTypes(t.Context(), template, began)
	if again, _ := c.InstanceTypes(t.Context(), template, began); first[0] != again[0] {
		t.Error("the same call returns other values")
	}
	if got := available(c, began.Add(time.Minute)); got != all {
		t.Errorf("when its time is over: %d are available, want %d", got, all)
	}
	template.Status.UnavailableOfferings = nil
	template.Status.ScalableResources = []v1alpha1.ScalableResourceStatus{{Name: "x", InstanceType: name, Zone: zone, CapacityType: capacityType, Paused: true}}
	if got := available(c, began); got != all-1 {
		t.Errorf("with one that is paused: %d are available, want %d", got, all-1)
	}
}
