// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// maxOfferings is how many offerings a catalog can have, and a template with all its catalogs. What it discovers takes from that
// room, but is never refused: users of the management cluster create it, one object for each. The largest
// regions of the clouds have about 15,000: 800 instance types in 6 zones with 3 capacity types. Shared offerings and zones
// multiply, so that a small object could have 2,000,000, which no memory of an operator holds.
const maxOfferings = 50_000

// TooManyError is the error for a catalog with more offerings than can be used.
type TooManyError struct{ offerings int }

// Error returns the numbers, and what to do.
func (e TooManyError) Error() string {
	return fmt.Sprintf("it has %d offerings, and a catalog can have %d: name fewer instance types or zones", e.offerings, maxOfferings)
}

// offeringsIn returns how many offerings a catalog has, without building them.
func offeringsIn(spec *v1alpha1.InstanceTypeCatalogSpec) int {
	zones := func(offerings []v1alpha1.Offering) int {
		return lo.SumBy(offerings, func(o v1alpha1.Offering) int { return max(1, len(o.Zones)) })
	}
	shared := zones(spec.Offerings)
	return lo.SumBy(spec.InstanceTypes, func(given v1alpha1.InstanceType) int {
		return lo.Ternary(len(given.Offerings) == 0, shared, zones(given.Offerings))
	})
}

// checkSize returns an error for a catalog with too many offerings.
func checkSize(spec *v1alpha1.InstanceTypeCatalogSpec) error {
	if offerings := offeringsIn(spec); offerings > maxOfferings {
		return TooManyError{offerings}
	}
	return nil
}

// fittingCatalogs returns the catalogs of a template for which it has room, beside what it discovers. A
// catalog that is too large by itself is among them: it is refused later.
func fittingCatalogs(discovered []Source, catalogs []*v1alpha1.InstanceTypeCatalog) ([]*v1alpha1.InstanceTypeCatalog, []Problem) {
	has := lo.SumBy(discovered, func(s Source) int { return len(s.Offerings) })
	var problems []Problem
	fitting := lo.Filter(catalogs, func(catalog *v1alpha1.InstanceTypeCatalog, _ int) bool {
		more := offeringsIn(&catalog.Spec)
		switch {
		case more > maxOfferings:
			return true
		case has+more > maxOfferings:
			problems = append(problems, Problem{v1alpha1.ReasonTooManyOfferings, fmt.Sprintf(
				"%s %s: with its %d offerings the template would have %d, and it can have %d: refer to fewer catalogs, or use several templates",
				v1alpha1.CatalogKind, catalog.Name, more, has+more, maxOfferings)})
			return false
		}
		has += more
		return true
	})
	return fitting, problems
}
