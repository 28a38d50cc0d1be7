// SPDX-License-Identifier: Apache-2.0

// Command karpenter-capi runs Karpenter for a Cluster of Cluster API: Karpenter core with
// all its controllers, a CloudProvider for Cluster API, and the reconcilers that create
// Machines for NodeClaims. The subcommand uninstall-check reports whether it can be uninstalled.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
	"github.com/karpenter-capi/karpenter-capi/internal/controller"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// memoryShare is the share of the container's memory limit that is the soft memory limit of
// Go's garbage collector, as in Karpenter's own operator.
const memoryShare = 0.9

// gcPercent is how much the heap may grow between two garbage collections, in percent of what is live; Go's default is 100.
// A burst of NodeClaims makes a lot of garbage, and its collection was up to a fifth of the CPU. The soft memory limit
// makes it more frequent where memory is short. The environment variable GOGC overrides it.
const gcPercent = 300

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "karpenter-capi: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == uninstallCheckCommand {
		return uninstallCheck(ctx, args[1:], os.Stdout)
	}
	options, err := operator.ParseOptions(args...)
	if err != nil {
		return err
	}
	if options.PrintVersion {
		fmt.Println(build.Read())
		return nil
	}
	if limit := options.Core.MemoryLimit; limit > 0 {
		debug.SetMemoryLimit(int64(float64(limit) * memoryShare))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	workload, management, err := operator.AwaitClusters(ctx, options)
	if errors.Is(err, context.Canceled) {
		return nil // It was stopped before it could start.
	}
	if err != nil {
		return err
	}
	ctx, op, err := operator.New(ctx, workload, management, options)
	if err != nil {
		return err
	}
	if _, err := controller.Setup(ctx, op); err != nil {
		return err
	}
	return op.Start(ctx)
}
