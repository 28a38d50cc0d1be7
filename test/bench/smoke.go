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
	{figure{"requests per claim", (*result).requests, count}, 65},
	{figure{"live reads of claims, Machines, instances and Nodes per claim", (*result).liveReads, count}, 3.5},
	{figure{"writes of the Machine per claim", (*result).machineWrites, count}, 3.5},
	{figure{"conflicts of the writes of Machines", (*result).conflicts, percent}, 0.1},
	{figure{"writes of the claim by the operator's own code", (*result).ownClaimWrites, count}, 2},
	{figure{"Node created → provider ID, p99", providerIDP99, short}, 3},
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
			errs = append(errs, fmt.Errorf("%s: %s, but at most %s is allowed", b.figure.name, b.figure.format(value), b.figure.format(b.most)))
		}
	}
	return errors.Join(errs...)
}
