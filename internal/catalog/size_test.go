// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/counts"
)

// listOf returns a catalog with instance types that share as many offerings, each with as many zones.
func listOf(types, offerings, zones int) v1alpha1.InstanceTypeCatalogSpec {
	spec := v1alpha1.InstanceTypeCatalogSpec{}
	for i := range offerings {
		shared := v1alpha1.Offering{CapacityType: "on-demand", Price: "1"}
		for zone := range zones {
			shared.Zones = append(shared.Zones, v1alpha1.Zone(fmt.Sprintf("zone-%d-%d", i, zone)))
		}
		spec.Offerings = append(spec.Offerings, shared)
	}
	for i := range types {
		spec.InstanceTypes = append(spec.InstanceTypes, v1alpha1.InstanceType{Name: fmt.Sprintf("type-%d", i), Capacity: list("cpu", "2", "memory", "8Gi")})
	}
	return spec
}

func TestOfferingsIn(t *testing.T) {
	own := listOf(2, 3, 4)
	own.InstanceTypes[1].Offerings = []v1alpha1.Offering{{Zones: []v1alpha1.Zone{"a", "b"}}, {}}
	for name, tc := range map[string]struct {
		spec v1alpha1.InstanceTypeCatalogSpec
		want int
	}{
		"nothing":                 {},
		"types without offerings": {listOf(3, 0, 0), 0},
		"offerings without types": {listOf(0, 3, 4), 0},
		"without zones":           {listOf(3, 1, 0), 3},
		"shared":                  {listOf(3, 2, 4), 24},
		"own ones of one type":    {own, 12 + 3},
		"all that the CRD allows": {listOf(1000, 64, 32), 2_048_000},
	} {
		t.Run(name, func(t *testing.T) {
			if got := offeringsIn(&tc.spec); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// A catalog that is too large is refused before anything is built from it.
func TestTooManyOfferings(t *testing.T) {
	huge := listOf(1000, 64, 32)
	before := allocated()
	types, problems := Expand(&huge)
	_, wrong := ofCatalog(template(), &v1alpha1.InstanceTypeCatalog{Spec: huge})
	if used := allocated() - before; used > 1<<20 {
		t.Errorf("%d KiB are used for what is refused", used>>10)
	}
	const want = "it has 2048000 offerings, and a catalog can have 50000: name fewer instance types or zones"
	if len(types) != 0 || len(problems) != 1 || !errors.As(problems[0], &TooManyError{}) || problems[0].Error() != want {
		t.Errorf("got %d types and the problems %v, want %q", len(types), problems, want)
	}
	if len(wrong) != 1 || wrong[0].Reason != v1alpha1.ReasonTooManyOfferings || !strings.HasSuffix(wrong[0].Message, want) {
		t.Errorf("got the problems %+v, want %q", wrong, want)
	}
	largest := listOf(1000, 2, 25)
	if types, problems := Expand(&largest); len(types) != 1000 || len(problems) != 0 {
		t.Errorf("with as many as a catalog can have: got %d types and the problems %v", len(types), problems)
	}
}

// A template has room for what it discovers first, then for its catalogs in their order. One that does not fit hides no
// other.
func TestTooManyOfferingsOfCatalogs(t *testing.T) {
	catalog := func(name string, types, zones int) *v1alpha1.InstanceTypeCatalog {
		c := &v1alpha1.InstanceTypeCatalog{}
		c.Name, c.Spec = name, listOf(types, 1, zones)
		for i := range c.Spec.InstanceTypes {
			c.Spec.InstanceTypes[i].Name = fmt.Sprintf("%s-%d", name, i)
		}
		return c
	}
	for name, tc := range map[string]struct {
		discovered int // objects, with one offering each
		catalogs   []*v1alpha1.InstanceTypeCatalog
		want       int // offerings
		problems   []string
	}{
		"all fit":                             {discovered: 25_000, catalogs: []*v1alpha1.InstanceTypeCatalog{catalog("a", 1000, 25)}, want: 50_000},
		"the second does not":                 {catalogs: []*v1alpha1.InstanceTypeCatalog{catalog("a", 1000, 25), catalog("b", 1000, 26), catalog("c", 1000, 20)}, want: 45_000, problems: []string{"InstanceTypeCatalog b: with its 26000 offerings the template would have 51000, and it can have 50000: refer to fewer catalogs, or use several templates"}},
		"one does not fit in any":             {discovered: 25, catalogs: []*v1alpha1.InstanceTypeCatalog{catalog("a", 1000, 51), catalog("b", 1, 3)}, want: 28, problems: []string{"InstanceTypeCatalog a: it has 51000 offerings, and a catalog can have 50000"}},
		"what is discovered leaves no room":   {discovered: 49_975, catalogs: []*v1alpha1.InstanceTypeCatalog{catalog("a", 1, 26), catalog("b", 1, 25)}, want: 50_000, problems: []string{"InstanceTypeCatalog a: with its 26 offerings"}},
		"what is discovered is never refused": {discovered: 50_001, catalogs: []*v1alpha1.InstanceTypeCatalog{catalog("a", 1, 25)}, want: 50_001, problems: []string{"InstanceTypeCatalog a: with its 25 offerings"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := lo.Times(tc.discovered, func(i int) Source { return discovered("x", fmt.Sprint("found-", i), "a") })
			types, problems := TypesOf(template(), found, tc.catalogs...)
			if got := lo.SumBy(types, func(t Type) int { return len(t.Offerings) }); got != tc.want {
				t.Errorf("got %d offerings, want %d", got, tc.want)
			}
			if len(problems) != len(tc.problems) {
				t.Fatalf("got %+v, want %q", problems, tc.problems)
			}
			for i, want := range tc.problems {
				if problems[i].Reason != v1alpha1.ReasonTooManyOfferings || !strings.HasPrefix(problems[i].Message, want) {
					t.Errorf("got %+v, want %q", problems[i], want)
				}
			}
		})
	}
}

// The largest template that is allowed has a price, which is known.
func TestMemoryOfMostOfferings(t *testing.T) {
	owner, largest := template("types"), listed()
	largest.Spec = listOf(1000, 2, 25)
	c, w := newWorld(t)
	w.shared = []v1alpha1.InstanceTypeCatalog{*largest}
	before := heap()
	ask(t, c, owner)
	after := heap()
	used := max(after, before) - before
	runtime.KeepAlive(c)
	line := fmt.Sprintf("a template with %d offerings keeps %d MiB", maxOfferings, used>>20)
	t.Log(line)
	counts.Print(t, line)
	if used > 64<<20 {
		t.Errorf("%s, want at most 64 MiB", line)
	}
}

// allocated returns how many bytes were ever allocated.
func allocated() uint64 {
	stats := runtime.MemStats{}
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}
