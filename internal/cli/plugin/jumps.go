// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// maxJumpsNamed is how many changes of prices an error names.
const maxJumpsNamed = 5

// refuseJumps returns an error if a list price of a catalog in the cluster would change by more than a factor. 0 is no
// limit. Adjustments of prices are usually not in the file, and stay.
func refuseJumps(ctx context.Context, c client.Client, given *v1alpha1.InstanceTypeCatalog, factor float64) error {
	switch {
	case factor == 0:
		return nil
	case !(factor > 1): // also if it is not a number
		return fmt.Errorf("--max-price-factor: expected a number of more than 1, such as 2, found %v", factor)
	}
	before, err := current(ctx, c, given.Name)
	if err != nil {
		return fmt.Errorf("reading InstanceTypeCatalog %s: %w", given.Name, err)
	}
	if before == nil {
		return nil
	}
	var jumps []string
	for _, changed := range Compare(unadjusted(before), unadjusted(given)).Changed {
		for _, p := range changed.Prices {
			if p.ratio() > factor {
				jumps = append(jumps, fmt.Sprintf("%s %s: %s → %s", changed.Name, p.Offering, p.From, p.To))
			}
		}
	}
	if len(jumps) == 0 {
		return nil
	}
	return fmt.Errorf("InstanceTypeCatalog %s: %d prices change by more than the factor %v, such as %s. See all of them with catalog diff. If they are right, apply the file without --max-price-factor",
		given.Name, len(jumps), factor, strings.Join(jumps[:min(len(jumps), maxJumpsNamed)], "; "))
}

// unadjusted returns a catalog with its list prices only.
func unadjusted(c *v1alpha1.InstanceTypeCatalog) *v1alpha1.InstanceTypeCatalog {
	if c.Spec.Pricing == nil {
		return c
	}
	c = c.DeepCopy()
	c.Spec.Pricing.Conversion, c.Spec.Pricing.Adjustments = nil, nil
	return c
}

// ratio returns the higher price divided by the lower one, which is infinite if only one of them is 0.
func (p PriceChange) ratio() float64 {
	// They were formatted by number.
	from, _ := strconv.ParseFloat(p.From, 64)
	to, _ := strconv.ParseFloat(p.To, 64)
	return max(from, to) / min(from, to)
}
