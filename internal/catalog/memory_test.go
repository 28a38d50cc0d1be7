// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// closed returns the offerings of m5.large that cannot be chosen.
func closed(t *testing.T, c *Catalog, template *v1alpha1.KarpenterMachineTemplate, now time.Time) []string {
	t.Helper()
	instanceTypes, err := c.InstanceTypes(t.Context(), template, now)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, offering := range instanceTypes[0].Offerings {
		if !offering.Available {
			found = append(found, offering.Zone()+"/"+offering.CapacityType())
		}
	}
	slices.Sort(found)
	return found
}

func known(template *v1alpha1.KarpenterMachineTemplate, generation int64) *v1alpha1.KarpenterMachineTemplate {
	template.UID, template.Generation, template.ResourceVersion = "1", generation, "1"
	return template
}

// The valid offerings of a template are known after it was examined in its current
// generation, or if all of them were accepted before. Other offerings are closed.
func TestAccepted(t *testing.T) {
	c, _ := newWorld(t, listed(m5large()))
	input := known(template("types"), 1)
	if c.Examined(input) {
		t.Error("it counts as examined, but is not")
	}
	if diff := cmp.Diff([]string(nil), closed(t, c, input, began)); diff != "" {
		t.Errorf("closed before it was examined (-want +got):\n%s", diff)
	}

	// The resourceVersion is the same, because the status is not written yet.
	c.SetAccepted(input, sets.New(Key{"m5.large", "a", "on-demand"}, Key{"m5.large", "b", "on-demand"}))
	if !c.Examined(input) {
		t.Error("it does not count as examined")
	}
	if diff := cmp.Diff([]string{"a/spot"}, closed(t, c, input, began)); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}

	c.SetAccepted(input, sets.New(Key{"m5.large", "a", "on-demand"}))
	if diff := cmp.Diff([]string{"a/spot", "b/on-demand"}, closed(t, c, input, began)); diff != "" {
		t.Errorf("closed after another one has become invalid (-want +got):\n%s", diff)
	}

	// An instance type that a catalog lists later was not examined.
	extended := known(template("types"), 1)
	other, w := newWorld(t, listed(m5large()))
	other.SetAccepted(extended, sets.New(Key{"m5.large", "a", "spot"}))
	longer := listed(m5large(), v1alpha1.InstanceType{
		Name: "m5.new", Capacity: list("cpu", "2", "memory", "8Gi"), Offerings: []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a"}, CapacityType: "spot", Price: "1"}},
	})
	longer.Generation = 2
	w.shared = []v1alpha1.InstanceTypeCatalog{*longer}
	instanceTypes, err := other.InstanceTypes(t.Context(), extended, began)
	if err != nil || instanceTypes[1].Offerings[0].Available {
		t.Errorf("got %v and %+v, want that it is closed", err, instanceTypes[1].Offerings[0])
	}

	next := known(template("types"), 2)
	if c.Examined(next) {
		t.Error("it counts as examined in the next generation")
	}
	c.SetAccepted(next, sets.New(Key{"m5.large", "a", "on-demand"}))
	if !c.Examined(next) {
		t.Error("it does not count as examined if the same offerings are valid in the next generation")
	}
	none, _ := newWorld(t, listed(m5large()))
	none.SetAccepted(input, sets.New[Key]())
	if !none.Examined(input) || len(closed(t, none, input, began)) != 3 {
		t.Error("it does not count as examined, or has offerings, if no offering is valid")
	}
	recreated := known(template("types"), 2)
	recreated.UID = "2"
	if c.Examined(recreated) {
		t.Error("another template of its name counts as examined")
	}
	restarted, _ := newWorld(t, listed(m5large()))
	input.Status.AcceptedHash = "x"
	if !restarted.Examined(input) {
		t.Error("it does not count as examined after a restart, although all offerings were accepted")
	}
}

// A mark that could not be written has the same effect as one in the status, until it is written.
func TestMarkInMemory(t *testing.T) {
	c, _ := newWorld(t, listed(m5large()))
	input := known(template("types"), 1)
	closed(t, c, input, began)
	failed := v1alpha1.UnavailableOffering{InstanceType: "m5.large", Zone: "a", CapacityType: "spot", Reason: "LaunchTimeout", Message: "none left"}
	c.Remember(input, failed, began)
	if diff := cmp.Diff([]string{"a/spot"}, closed(t, c, input, began)); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}
	key := Key{"m5.large", "a", "spot"}
	if c.IsMarked(input, key, began) {
		t.Error("it counts as recorded after one attempt: it must be written again")
	}
	c.Remember(input, failed, began)
	if !c.IsMarked(input, key, began.Add(minUnavailable-time.Second)) {
		t.Error("it does not count as recorded after two attempts")
	}
	marks := c.Unavailable(input, began)
	want := failed
	want.Failures, want.Until = 1, metav1.NewTime(began.Add(minUnavailable))
	if diff := cmp.Diff([]v1alpha1.UnavailableOffering{want}, marks); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	if got := closed(t, c, input, began.Add(minUnavailable)); len(got) > 0 {
		t.Errorf("%v are closed after their time", got)
	}
	if c.IsMarked(input, key, began.Add(minUnavailable)) {
		t.Error("it counts as recorded after its time")
	}

	// It fails again: this is the second failure in a row.
	c.Remember(input, failed, began.Add(minUnavailable))
	again := c.Unavailable(input, began.Add(minUnavailable))
	if len(again) != 1 || again[0].Failures != 2 {
		t.Errorf("got %+v, want one with 2 failures", again)
	}
	if c.IsMarked(input, key, began.Add(minUnavailable)) {
		t.Error("the second failure counts as recorded after one attempt")
	}

	// The status has the mark and one of another offering. Then its mark has a later time.
	input.Status.UnavailableOfferings = append(again, v1alpha1.UnavailableOffering{InstanceType: "m5.large", Zone: "b", CapacityType: "on-demand", Until: again[0].Until})
	now := began.Add(minUnavailable)
	if diff := cmp.Diff(input.Status.UnavailableOfferings, c.Unavailable(input, now)); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	if !c.IsMarked(input, key, again[0].Until.Add(-time.Second)) {
		t.Error("it does not count as recorded when it is written")
	}
	input.Status.UnavailableOfferings[0].Until = metav1.NewTime(now.Add(time.Hour))
	if diff := cmp.Diff(input.Status.UnavailableOfferings, c.Unavailable(input, now)); diff != "" {
		t.Errorf("written later (-want +got):\n%s", diff)
	}
	if lo.SomeBy(c.Unavailable(input, now.Add(2*time.Hour)), func(v1alpha1.UnavailableOffering) bool { return true }) {
		t.Error("marks are never forgotten")
	}
}

// A mark that could not be written takes the place of an earlier one in the status.
func TestMarkInMemoryAfterAnEarlierOne(t *testing.T) {
	c, _ := newWorld(t, listed(m5large()))
	input := known(template("types"), 1)
	failed := v1alpha1.UnavailableOffering{InstanceType: "m5.large", Zone: "a", CapacityType: "spot", Reason: "LaunchTimeout"}
	earlier, other := failed, failed
	earlier.Failures, earlier.Until = 1, metav1.NewTime(began.Add(-time.Minute))
	other.Zone, other.Failures, other.Until = "b", 1, metav1.NewTime(began.Add(time.Hour))
	input.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{earlier, other}
	c.Remember(input, failed, began)
	again := failed
	again.Failures, again.Until = 2, metav1.NewTime(began.Add(2*minUnavailable))
	withoutOther := input.DeepCopy()
	withoutOther.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{earlier}
	if diff := cmp.Diff([]v1alpha1.UnavailableOffering{again}, c.Unavailable(withoutOther, began)); diff != "" {
		t.Errorf("without what the status no longer has (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]v1alpha1.UnavailableOffering{other, again}, c.Unavailable(input, began)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := c.InstanceTypes(t.Context(), input, began); err != nil {
		t.Fatal(err)
	}
	c.SetAccepted(input, sets.New(Key{"m5.large", "a", "on-demand"}))
	if c.Accepted(input, Key{"m5.large", "a", "spot"}) || !c.Accepted(input, Key{"m5.large", "a", "on-demand"}) || !c.Accepted(known(template("types"), 2), Key{"m5.large", "a", "spot"}) {
		t.Error("offerings are accepted that are invalid, or the other way round")
	}
}
