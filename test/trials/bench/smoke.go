// SPDX-License-Identifier: Apache-2.0

package bench

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
	{allRequests, 65},
	{liveReads, 2},
	{machineWrites, 3},
	{conflicts, 0.05},
	{ownClaimWrites, 1.5},
	{templateWrites, 0.5},
	{templateBurst, 3},
}

// durationBounds are bounds with a large margin. They apply unless other processes disturb the run.
var durationBounds = []bound{{providerIDP99, 3}}

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
