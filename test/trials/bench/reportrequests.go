// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/samber/lo"
)

// requests has the operator's requests per claim.
func (r *report) requests() string {
	sizes := r.operatorSizes()
	t := &table{header: []string{"request"}}
	kinds := map[requestKind]float64{}
	perClaim := func(of size, kind requestKind, phase func(requestCount) int) float64 {
		return medianOf(r.results[of][operator.name], func(m result) float64 {
			for _, count := range m.Requests {
				if count.requestKind == kind {
					return m.each(phase(count))
				}
			}
			return 0
		})
	}
	up, down := func(c requestCount) int { return c.Up }, func(c requestCount) int { return c.Down }
	for _, of := range sizes {
		t.header = append(t.header, of.String()+" up", "down")
		for _, measured := range r.results[of][operator.name] {
			for _, count := range measured.Requests {
				if count.Component != operatorAgent {
					continue
				}
				kinds[count.requestKind] = max(kinds[count.requestKind], measured.each(count.Up+count.Down))
			}
		}
	}
	sorted := slices.SortedFunc(maps.Keys(kinds), func(a, b requestKind) int {
		return slices.Compare([]string{a.Resource, a.Verb, fmt.Sprint(a.Code)}, []string{b.Resource, b.Verb, fmt.Sprint(b.Code)})
	})
	rest := 0
	for _, kind := range sorted {
		if kinds[kind] < rareRequest {
			rest++
			continue
		}
		cells := []string{fmt.Sprintf("%s %s: %d", kind.Verb, kind.Resource, kind.Code)}
		for _, of := range sizes {
			cells = append(cells, count(perClaim(of, kind, up)), count(perClaim(of, kind, down)))
		}
		t.add(cells...)
	}
	return t.String() + fmt.Sprintf("\nOther kinds of requests, which are rarer than one for %.0f claims: %d.\n", 1/rareRequest, rest)
}

// rareRequest is the number of requests per claim below which a kind is not listed.
const rareRequest = 0.01

// components has the requests of all components per claim, in both phases, of the largest size with the most variants.
func (r *report) components() string {
	if len(r.sizes) == 0 {
		return ""
	}
	of := slices.MaxFunc(r.sizes, func(a, b size) int {
		return cmp.Or(cmp.Compare(len(r.results[a]), len(r.results[b])), cmp.Compare(a.n, b.n))
	})
	measured := lo.Filter(variants, func(v variant, _ int) bool { return len(r.results[of][v.name]) > 0 })
	type sort struct{ component, what string }
	sortOf := func(kind requestKind) sort {
		refused := lo.Ternary(isRefused(kind), ", refused", "")
		return sort{kind.Component, fmt.Sprintf("%s %s%s", kind.Verb, kind.Resource, refused)}
	}
	most := map[sort]float64{}
	perClaim := map[sort][]float64{}
	add := func(key sort, column int, each float64) {
		if perClaim[key] == nil {
			perClaim[key] = make([]float64, len(measured))
		}
		perClaim[key][column] += each
		most[key] = max(most[key], perClaim[key][column])
	}
	t := &table{header: []string{of.String()}}
	for column, v := range measured {
		t.header = append(t.header, v.name)
		for _, m := range r.results[of][v.name] {
			for _, c := range m.Requests {
				each := m.each(c.Up+c.Down) / float64(len(r.results[of][v.name]))
				add(sortOf(c.requestKind), column, each)
				add(sort{component: c.Component}, column, each)
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(perClaim), func(a, b sort) int {
		return cmp.Or(cmp.Compare(a.component, b.component), cmp.Compare(a.what, b.what))
	})
	for _, key := range keys {
		if most[key] < rareOfComponent {
			continue
		}
		name := "**" + key.component + "**"
		if key.what != "" {
			name = key.what
		}
		t.add(append([]string{name}, lo.Map(perClaim[key], func(each float64, _ int) string { return count(each) })...)...)
	}
	return t.String()
}

// rareOfComponent is the number of requests per claim below which a sort of request of a component is not listed.
const rareOfComponent = 0.05
