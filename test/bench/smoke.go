// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
)

// bound is what a small run must not exceed. Bounds are counts and ratios, which hardly depend on the machine, except
// for one duration with a large margin.
type bound struct {
	figure figure
	most   float64
}

var bounds = []bound{
	{figure{"requests per claim", (*result).requests, count}, 60},
}

// concludeSmoke returns an error that names each bound that a result exceeds.
func concludeSmoke(_ options, results []result) error {
	report := newReport(results)
	fmt.Println()
	fmt.Print(report.text())
	var errs []error
	for i := range results {
		errs = append(errs, check(&results[i]))
	}
	return errors.Join(errs...)
}

// check compares a result with the bounds.
func check(measured *result) error {
	var errs []error
	for _, b := range bounds {
		if value := b.figure.of(measured); value > b.most {
			errs = append(errs, fmt.Errorf("%s: %s exceeds the bound of %s", b.figure.name, b.figure.format(value), b.figure.format(b.most)))
		}
	}
	return errors.Join(errs...)
}
