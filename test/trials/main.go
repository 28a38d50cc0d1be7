// SPDX-License-Identifier: Apache-2.0

// Command trials runs what needs a local stack: it starts, stops and inspects one, and shows, disturbs or measures the
// operator on a stack of its own. Each command has the name of the make target that runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/karpenter-capi/karpenter-capi/test/trials/bench"
	"github.com/karpenter-capi/karpenter-capi/test/trials/chaos"
	"github.com/karpenter-capi/karpenter-capi/test/trials/conformance"
	"github.com/karpenter-capi/karpenter-capi/test/trials/demo"
	"github.com/karpenter-capi/karpenter-capi/test/trials/partition"
)

const usage = `Runs Karpenter, Cluster API and simulated machines on this computer.

Usage:
  trials stack-up      start a stack, and wait until it is ready
  trials stack-down    stop it, and keep its logs
  trials stack-status  show its processes
  trials demo          show the whole path from Pods that wait to Nodes, and back
  trials chaos         kill the operator and others while Nodes come and go
  trials quiet         check that the operator writes nothing when there is nothing to do
  trials partition     disturb the network to each of two clusters
  trials bench         measure the operator, Karpenter with its simulated provider, and Cluster API alone
  trials conformance   run Karpenter's own test suites against the operator
  trials bench-smoke   check that a small run of the operator exceeds no bound

Each takes -h for its flags.
`

var commands = map[string]func(context.Context, []string) error{
	"stack-up": up, "stack-down": down, "stack-status": status,
	"demo": demo.Run, "chaos": chaos.Run, "quiet": chaos.Quiet, "partition": partition.Run,
	"bench": bench.Run, "bench-smoke": bench.Smoke, "conformance": conformance.Run,
}

func main() {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	name := os.Args[1]
	if err := commands[name](ctx, os.Args[2:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: failed: %v\n", name, err)
		os.Exit(1)
	}
}
