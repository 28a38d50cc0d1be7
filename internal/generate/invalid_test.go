// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// manyOfferings returns the offerings of 800 instance types in 6 zones.
func manyOfferings() []catalog.Key {
	var offerings []catalog.Key
	for i := range 800 {
		for zone := range 6 {
			offerings = append(offerings, catalog.Key{InstanceType: fmt.Sprintf("type-%d", i), Zone: fmt.Sprintf("zone-%d", zone), CapacityType: "spot"})
		}
	}
	return offerings
}

// As long as one offering is valid, invalid ones do not disable it. The status has room for
// their problems and counts all of them.
func TestInvalidOfferingsAreGrouped(t *testing.T) {
	group := func(message string, count int32, examples ...string) v1alpha1.InvalidOfferings {
		return v1alpha1.InvalidOfferings{Reason: v1alpha1.ReasonPatchesFailed, Message: message, Count: count, Examples: examples}
	}
	for name, tc := range map[string]struct {
		problem    func(i int, key catalog.Key) error
		want       []v1alpha1.InvalidOfferings // nil: not compared
		wantGroups int
		others     string // message of the last group; not compared if empty
	}{
		"with one message": {problem: func(int, catalog.Key) error { return errors.New("no such field") }, wantGroups: 1, want: []v1alpha1.InvalidOfferings{
			group("no such field", 4799, "type-0/zone-0/spot", "type-0/zone-1/spot", "type-0/zone-2/spot", "type-0/zone-3/spot", "type-0/zone-4/spot"),
		}},
		"the most frequent first": {problem: func(_ int, key catalog.Key) error {
			return lo.Ternary(key.Zone == "zone-0" && key.InstanceType < "type-2", errors.New("rare"), errors.New("frequent"))
		}, wantGroups: 2},
		"with a few messages": {problem: func(i int, _ catalog.Key) error { return fmt.Errorf("message %d", i%20) }, wantGroups: 20},
		"with a long message each": {problem: func(i int, _ catalog.Key) error { return fmt.Errorf("message %d: %s", i, strings.Repeat("<é>", 2000)) },
			wantGroups: 26},
		"with more messages than the status has room for": {
			problem: func(i int, _ catalog.Key) error {
				return fmt.Errorf("message %d: %s", i%30, strings.Repeat("<é>", 2000))
			},
			wantGroups: 23, others: "8 other messages"},
		"with a short message each": {problem: func(i int, _ catalog.Key) error { return fmt.Errorf("message %d", i) }, wantGroups: maxGroups},
		"with as many messages as the status can list": {
			problem:    func(i int, _ catalog.Key) error { return fmt.Errorf("message %d", i%maxGroups) },
			wantGroups: maxGroups, others: "message 31"},
		"with one message more": {
			problem:    func(i int, _ catalog.Key) error { return fmt.Errorf("message %d", i%(maxGroups+1)) },
			wantGroups: maxGroups, others: "2 other messages"},
	} {
		t.Run(name, func(t *testing.T) {
			offerings := manyOfferings()
			problems := map[catalog.Key]error{}
			for i, key := range offerings[:len(offerings)-1] {
				problems[key] = tc.problem(i, key)
			}
			good := sets.New(offerings[len(offerings)-1])
			got := summarize(offerings, problems, good, "hash")
			if got.All != nil || got.Hash != "" || !got.accepted.Equal(good) {
				t.Errorf("got %v, hash %q, %d accepted: want that one offering is valid", got.All, got.Hash, got.accepted.Len())
			}
			if len(got.Invalid) != tc.wantGroups {
				t.Errorf("got %d groups, want %d", len(got.Invalid), tc.wantGroups)
			}
			if last := got.Invalid[len(got.Invalid)-1]; tc.others != "" && last.Message != tc.others {
				t.Errorf("the last group is %q, want %q", last.Message, tc.others)
			}
			if tc.want != nil {
				if diff := cmp.Diff(tc.want, got.Invalid); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			counted, last := int32(0), int32(0)
			for i, g := range got.Invalid {
				counted += g.Count
				if others := i == len(got.Invalid)-1 && strings.HasSuffix(g.Message, "other messages"); i > 0 && !others && g.Count > last {
					t.Errorf("a group of %d follows one of %d", g.Count, last)
				}
				last = g.Count
			}
			if counted != 4799 {
				t.Errorf("%d offerings are counted, want 4799", counted)
			}
			if size := budget.Size(got.Invalid); size > budget.Invalid {
				t.Errorf("they have %d bytes, want at most %d", size, budget.Invalid)
			}
		})
	}
}

// If several copies are rejected for one reason, they are one group: their names do not matter.
func TestRejectionsAreGroupedWithoutNames(t *testing.T) {
	a := newAsking()
	a.answer = func(zone string) error {
		if zone == "a" {
			return nil
		}
		return apierrors.NewInvalid(schema.GroupKind{Kind: "TestMachineTemplate"}, a.last, nil)
	}
	got, _, err := a.examine(t, nil)
	if err != nil || len(got.Invalid) != 1 || got.Invalid[0].Count != 2 {
		t.Fatalf("got %+v and %v, want one group of two", got.Invalid, err)
	}
	if want := "the management cluster rejects TestMachineTemplate: TestMachineTemplate is invalid"; got.Invalid[0].Message != want {
		t.Errorf("got %q, want %q", got.Invalid[0].Message, want)
	}
}
