// SPDX-License-Identifier: Apache-2.0

// Package partition shows on a local stack with two clusters that the operator survives the loss of either of them. For
// each fault of package proxy and each cluster, Pods come and go, so that Nodes are launched, run and are deleted. The
// fault begins, lasts, and ends. Then everything must settle. No claim may have had two Machines, and no claim, Node or
// Machine may have been removed while its Pods wanted it. Package history checks the invariants of docs/design.
//
// It prints a line for each fault and cluster. The last line is the result; the exit code is 1 on any failure. The logs
// stay in the state folder, among them history.log, which has the changes of each claim and Machine.
package partition

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/proxy"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/trials/scene"
)

// Run disturbs the network to each of two clusters.
func Run(ctx context.Context, args []string) error {
	options, err := parse(args)
	if err != nil {
		return err
	}
	return scene.Run(ctx, "partition", stack.Options{Placement: stack.InWorkload, OneEtcd: true, Proxied: true}, false,
		func(ctx context.Context, on *stack.Stack) (string, error) { return partition(ctx, on, options) })
}

// options are the parameters of a run.
type options struct {
	// faults are the modes of the proxies.
	faults []proxy.Mode
	// lasting is how long each fault lasts.
	lasting time.Duration
	// pods is the number of Pods if all Deployments are large.
	pods int
	// seed of the random choices.
	seed uint64
	// kind is the kind of scalable resource.
	kind kinds.Kind
}

// allFaults are the faults by default.
const allFaults = "cut,delay,drop,refuse"

func parse(args []string) (options, error) {
	chosen := options{kind: kinds.MachineDeployment}
	flags := flag.NewFlagSet("partition", flag.ContinueOnError)
	faults := flags.String("faults", allFaults, "the faults, separated by commas")
	seconds := flags.Int("seconds", 180, "how long each fault lasts")
	flags.IntVar(&chosen.pods, "pods", 60, "number of Pods if all Deployments are large, of which about half are")
	flags.Uint64Var(&chosen.seed, "seed", uint64(time.Now().UnixNano()), "seed of the random choices; default: the time")
	flags.Var(&chosen.kind, "kind", kinds.Usage)
	if err := flags.Parse(args); err != nil {
		return chosen, err
	}
	if flags.NArg() > 0 {
		return chosen, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *seconds < 1 {
		return chosen, fmt.Errorf("-seconds is %d: set it to 1 or more", *seconds)
	}
	chosen.lasting = time.Duration(*seconds) * time.Second
	for _, fault := range strings.Split(*faults, ",") {
		if !slices.Contains(strings.Split(allFaults, ","), fault) {
			return chosen, fmt.Errorf("there is no fault %q: choose some of %s", fault, allFaults)
		}
		chosen.faults = append(chosen.faults, proxy.Mode(fault))
	}
	return chosen, nil
}
