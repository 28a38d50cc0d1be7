// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
)

// bound is what a small run must not exceed. The figures are counts and ratios, so they hardly depend on the machine.
type bound struct {
	figure figure
	most   float64
}

var bounds = []bound{
	{figure{"requests per claim", (*result).requests, count}, 65},
	{figure{"live reads of claims, Machines, instances and Nodes per claim", (*result).liveReads, count}, 2},
	{figure{"writes of the Machine per claim", (*result).machineWrites, count}, 3},
	{figure{"conflicts of the writes of Machines", (*result).conflicts, percent}, 0.05},
	{figure{"writes of the claim by the operator's own code", (*result).ownClaimWrites, count}, 1.5},
}

// durationBounds are bounds with a large margin. They apply unless other processes disturb the run.
var durationBounds = []bound{
	{figure{"Node created → provider ID, p99", providerIDP99, short}, 3},
}

// concludeSmoke returns an error that names each bound that a result exceeds.
func concludeSmoke(_ options, results []result) error {
	report := newReport(results)
	fmt.Println()
	fmt.Print(report.text())
	fmt.Println()
	var errs []error
	for i := range results {
		errs = append(errs, check(&results[i]))
	}
	return errors.Join(errs...)
}

// check compares a result with the bounds.
func check(measured *result) error {
	apply := bounds
	if used := measured.disturbance(); used > disturbing {
		fmt.Printf("The bounds of durations do not apply, because processes that do not belong to the run used %.1f cores.\n", used)
	} else {
		apply = slices.Concat(bounds, durationBounds)
	}
	var errs []error
	for _, b := range apply {
		if value := b.figure.of(measured); value > b.most {
			errs = append(errs, fmt.Errorf("%s: %s, but at most %s is allowed", b.figure.name, b.figure.format(value), b.figure.format(b.most)))
		}
	}
	return errors.Join(errs...)
}
