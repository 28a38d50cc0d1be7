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

// smoke is the name of the command that fails on bounds.
const smoke = "smoke"

// Run measures everything, and writes the tables.
func Run(ctx context.Context, args []string) error { return timed(ctx, "bench", args, conclude) }

// Smoke measures a small run of this operator, and checks its bounds.
func Smoke(ctx context.Context, args []string) error { return timed(ctx, smoke, args, concludeSmoke) }

func timed(ctx context.Context, name string, args []string, conclude func(options, []result) error) error {
	options, err := parseOptions(name, args)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := run(ctx, options, conclude); err != nil {
		return err
	}
	fmt.Printf("%s: ok seconds=%.0f\n", name, time.Since(began).Seconds())
	return nil
}

// run measures everything, and draws the conclusion from the results.
func run(ctx context.Context, options options, conclude func(options, []result) error) error {
	var results []result
	for _, size := range options.sizes {
		for number := range options.runs {
			for _, variant := range options.variants {
				fmt.Printf("==> %s, %s Pods, run %d of %d\n", variant.name, size, number+1, options.runs)
				measured, err := measure(ctx, options.dir, variant, size, number+1, options.profile)
				if err != nil {
					return fmt.Errorf("%s with %s Pods: %w", variant.name, size, err)
				}
				fmt.Printf("    up %.1f s, down %.1f s\n", measured.Up.Seconds, measured.Down.Seconds)
				if used := measured.disturbance(); used > disturbing {
					fmt.Printf("    disturbed: processes that do not belong to it used %.1f cores, so the durations are too long\n", used)
				}
				results = append(results, *measured)
			}
		}
	}
	return conclude(options, results)
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
	if options.document == "" {
		return nil
	}
	return writeDocument(options.document, report)
}
