// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/shopspring/decimal"
	"golang.org/x/text/currency"
)

// maxAllowance is the largest memory allowance, in percent.
const maxAllowance = 50

// check returns an error for options that cannot be meant.
func (o *Options) check() error {
	if err := o.checkPatterns(); err != nil {
		return err
	}
	if err := o.checkNumbers(); err != nil {
		return err
	}
	if q := o.EphemeralStorage; q != nil && q.Sign() <= 0 {
		return fmt.Errorf("--ephemeral-storage %s is not more than 0", q)
	}
	if _, err := time.Parse(time.DateOnly, o.Date); o.Date != "" && err != nil {
		return fmt.Errorf("--date %q is not a day such as 2026-11-20", o.Date)
	}
	if o.Currency != "" {
		return checkCurrency("--currency", o.Currency)
	}
	return nil
}

func (o *Options) checkNumbers() error {
	if a := o.MemoryAllowance; a != nil && (a.IsNegative() || a.GreaterThan(decimal.NewFromInt(maxAllowance))) {
		return fmt.Errorf("--memory-allowance %s%% is not between 0%% and %d%%", a, maxAllowance)
	}
	for flag, price := range map[string]*decimal.Decimal{"price-cpu": o.CPU, "price-memory": o.Memory, "price-gpu": o.GPU} {
		if price != nil && (price.IsNegative() || price.GreaterThan(maxPrice)) {
			return fmt.Errorf("--%s %s is not between 0 and %s", flag, price, maxPrice)
		}
	}
	if f := o.SpotFactor; f != nil && (f.IsNegative() || f.GreaterThan(maxSpotRatio)) {
		return fmt.Errorf("--spot-factor %s is not between 0 and %s: expected a factor such as 0.35", f, maxSpotRatio)
	}
	return nil
}

func (o *Options) checkPatterns() error {
	for flag, patterns := range map[string][]string{"family": o.Families, "size": o.Sizes, "architecture": o.Architectures, "zone": o.Zones} {
		for _, pattern := range patterns {
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				return fmt.Errorf("--%s %q is not a pattern such as m5, m* or c[56]*", flag, pattern)
			}
		}
	}
	return nil
}

// computesPrices reports whether machines without a price get one from their capacity.
func (o *Options) computesPrices() bool { return o.CPU != nil || o.Memory != nil || o.GPU != nil }

// accepts reports whether a machine passes the filters.
func (o *Options) accepts(m *machine) bool {
	return matches(o.Families, m.family()) && matches(o.Sizes, m.size()) && matches(o.Architectures, m.architecture)
}

// matches reports whether a value matches one of the patterns, or there are none.
func matches(patterns []string, value string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, err := path.Match(strings.ToLower(pattern), strings.ToLower(value))
		return err == nil && matched
	})
}

func checkCurrency(where, code string) error {
	if _, err := currency.ParseISO(code); err != nil || code != strings.ToUpper(code) {
		return fmt.Errorf("%s: currency %q is not a code of ISO 4217 such as USD", where, code)
	}
	return nil
}

// maxPrice is the highest price of one machine for one hour, in any currency.
var maxPrice = decimal.NewFromInt(10_000_000)

// maxExponent is the largest power of ten of a number, so that none needs much memory.
const maxExponent = 25

// ParseDecimal returns the number in a text, such as 0.096 or 1.2E-4.
func ParseDecimal(text string) (decimal.Decimal, error) {
	number, err := decimal.NewFromString(text)
	if err != nil || number.Exponent() > maxExponent || number.Exponent() < -maxExponent || number.NumDigits() > maxExponent {
		return decimal.Zero, fmt.Errorf("%q is not a decimal number such as 0.096", text)
	}
	return number, nil
}

// parsePrice returns the price of one machine for one hour.
func parsePrice(where, text string) (decimal.Decimal, error) {
	price, err := ParseDecimal(strings.TrimSpace(text))
	switch {
	case err != nil:
		return price, fmt.Errorf("%s: price %w", where, err)
	case price.IsNegative():
		return price, fmt.Errorf("%s: price %s is negative", where, price)
	case price.GreaterThan(maxPrice):
		return price, fmt.Errorf("%s: price %s is too high: expected the price of one machine for one hour, at most %s", where, price, maxPrice)
	}
	// The clouds give at most 10 digits.
	return price.Round(10), nil
}

// quoted returns values for a message.
func quoted(values []string) string {
	return strings.Join(lo.Map(values, func(v string, _ int) string { return fmt.Sprintf("%q", v) }), ", ")
}
