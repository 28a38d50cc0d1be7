// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

const (
	// maxGroups is the maximum of status.invalidOfferings in the CRD.
	maxGroups = 32
	// maxExamples is the number of offerings that each group names.
	maxExamples = 5
)

// summarize returns the result for a template with the given generated offerings. If at
// least one offering is valid, the others do not keep the template from being Ready.
func summarize(offerings []catalog.Key, problems map[catalog.Key]error, accepted sets.Set[catalog.Key], hash string) Result {
	if len(problems) == 0 {
		return Result{accepted: accepted, Hash: hash}
	}
	bad := lo.Filter(offerings, func(o catalog.Key, _ int) bool { return problems[o] != nil })
	if len(bad) == len(offerings) {
		return Result{accepted: accepted, All: fmt.Errorf("%d of %d generated offerings are invalid; %s: %w", len(bad), len(offerings), bad[0], problems[bad[0]])}
	}
	return Result{accepted: accepted, Invalid: fitting(groupsOf(bad, problems))}
}

// groupsOf returns offerings grouped by problem: the largest group first, and of equal ones
// that of the first offering.
func groupsOf(offerings []catalog.Key, problems map[catalog.Key]error) []v1alpha1.InvalidOfferings {
	type problem struct{ reason, message string }
	index := map[problem]int{}
	var groups []v1alpha1.InvalidOfferings
	for _, offering := range offerings {
		p := problem{ReasonOf(problems[offering]), budget.Text(problems[offering].Error(), budget.Group)}
		at, known := index[p]
		if !known {
			at = len(groups)
			index[p] = at
			groups = append(groups, v1alpha1.InvalidOfferings{Reason: p.reason, Message: p.message})
		}
		add(&groups[at], 1, offering.String())
	}
	slices.SortStableFunc(groups, func(a, b v1alpha1.InvalidOfferings) int { return cmp.Compare(b.Count, a.Count) })
	return groups
}

// fitting returns as many groups as the status has room for. If there are more, the last one
// counts the offerings of all others.
func fitting(groups []v1alpha1.InvalidOfferings) []v1alpha1.InvalidOfferings {
	if len(groups) <= maxGroups && budget.Size(groups) <= budget.Invalid {
		return groups
	}
	const largest = 1 << 10 // a group for the others
	kept := groups[:min(maxGroups-1, budget.Fit(groups, budget.Invalid-largest))]
	others := v1alpha1.InvalidOfferings{Reason: groups[len(kept)].Reason, Message: fmt.Sprintf("%d other messages", len(groups)-len(kept))}
	for _, group := range groups[len(kept):] {
		add(&others, group.Count, group.Examples[0])
	}
	return append(slices.Clip(kept), others)
}

func add(group *v1alpha1.InvalidOfferings, count int32, example string) {
	group.Count += count
	if len(group.Examples) < maxExamples {
		group.Examples = append(group.Examples, example)
	}
}
