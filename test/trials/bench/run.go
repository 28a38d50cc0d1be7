// SPDX-License-Identifier: Apache-2.0

// Package bench measures on local stacks how long the operator takes and what it costs.
//
//	bench         measures Karpenter with its own simulated provider, Cluster API alone, and this operator, one after
//	              the other, and writes the results to a document. It fails only if a result is incorrect: exactly one
//	              Machine for each claim after the scale-up, and nothing left after the scale-down.
//	bench-smoke   measures a small run of this operator, and fails if it exceeds a bound. See smoke.go.
//
// Everything runs on this machine: etcd, kube-apiserver, Cluster API, the operator and this program, each of which takes
// CPU time from the others.
package bench

import (
	"context"
	"fmt"
	"time"
)

// Run measures everything, and writes the tables.
func Run(ctx context.Context, args []string) error {
	options, err := parseOptions(args)
	if err != nil {
		return err
	}
	return run(ctx, "bench", options, conclude)
}

// Smoke measures small runs of this operator and of Karpenter with kwok, and checks the bounds.
func Smoke(ctx context.Context, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return run(ctx, "smoke", smokeOptions, concludeSmoke)
}

// run measures everything, and draws the conclusion from the results.
func run(ctx context.Context, name string, options options, conclude func(options, []result) error) error {
	began := time.Now()
	var results []result
	for _, planned := range options.measured {
		fmt.Printf("==> %s, run %d\n", planned.variant.name, planned.run)
		err := measure(ctx, options, planned, func(measured *result) error {
			results = append(results, *measured)
			_, err := keep(options, results) // A later one can fail.
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := conclude(options, results); err != nil {
		return err
	}
	fmt.Printf("%s: ok seconds=%.0f\n", name, time.Since(began).Seconds())
	return nil
}

// conclude stores the results and writes the tables.
func conclude(options options, results []result) error {
	results, err := keep(options, results)
	if err != nil {
		return err
	}
	report := newReport(results)
	fmt.Println()
	fmt.Print(report.text())
	if len(options.documents) == 0 {
		return nil
	}
	return writeDocuments(options.documents, report, options.stored)
}
