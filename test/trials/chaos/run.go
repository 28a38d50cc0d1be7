// SPDX-License-Identifier: Apache-2.0

// Package chaos shows on a local stack that the operator can be killed at any time, and that it is quiet when nothing
// is left to do.
//
//	chaos         the operator is killed every few seconds while many claims are launched, and later removed; so
//	              are kube-apiserver and Cluster API, less often. etcd is paused, and so is the operator while etcd is
//	              compacted. Everything must settle, and no invariant of docs/design may ever be violated, see
//	              package history. The flag -seed repeats a run.
//	quiet         with many settled claims, the operator writes nothing, not even after a restart. See quiet.go.
//
// The last line is the result; the exit code is 1 on any failure. The logs stay in the state folder, among them
// history.log, which has the changes of each claim and Machine. With CHAOS_KEEP=1 the stack is left up.
package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/trials/scene"
)

// Run kills the operator and others while Nodes come and go.
func Run(ctx context.Context, args []string) error { return run(ctx, "chaos", args, chaos) }

// Quiet checks that the operator writes nothing when there is nothing to do.
func Quiet(ctx context.Context, args []string) error { return run(ctx, "quiet", args, quiet) }

// sizes are the parameters of a trial.
type sizes struct {
	machines scene.Options
	// pods is the maximum number of Pods, each of which needs its own Node.
	pods int
	// kills is how often the operator is killed while they are created.
	kills int
	// seed of the random choices.
	seed uint64
	// period is how long the operator must be quiet.
	period time.Duration
}

func parse(name string, args []string) (sizes, error) {
	byDefault := sizes{machines: scene.Options{Failing: 8, LaunchTimeout: 90 * time.Second}, pods: 150, kills: 18, seed: uint64(time.Now().UnixNano()), period: 30 * time.Second}
	if name == "quiet" {
		byDefault.pods, byDefault.machines.Failing, byDefault.period = 200, 0, 2*time.Minute
		byDefault.machines.LaunchTimeout = launchWithin
	}
	chosen := sizes{machines: scene.Options{Kind: kinds.MachineDeployment}}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.IntVar(&chosen.pods, "pods", byDefault.pods, "number of Pods, and so of claims")
	flags.IntVar(&chosen.kills, "kills", byDefault.kills, "how often the operator is killed while the Pods are created")
	flags.IntVar(&chosen.machines.Failing, "failing", byDefault.machines.Failing, "share of the machines of instance type a, more than half of all, that fail, in percent")
	flags.DurationVar(&chosen.machines.LaunchTimeout, "launch-timeout", byDefault.machines.LaunchTimeout, "how long the launch of a machine can take")
	flags.Uint64Var(&chosen.seed, "seed", byDefault.seed, "seed of the random choices; default: the time")
	flags.DurationVar(&chosen.period, "period", byDefault.period, "how long the operator must be quiet")
	flags.Var(&chosen.machines.Kind, "kind", kinds.Usage)
	flags.BoolVar(&chosen.machines.RemoveAnnotated, "remove-annotated", false, "make the provider of MachinePools remove annotated machines even if replicas were not lowered, as Azure's does")
	if err := flags.Parse(args); err != nil {
		return chosen, err
	}
	if flags.NArg() > 0 {
		return chosen, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if chosen.machines.RemoveAnnotated && chosen.machines.Kind != kinds.MachinePool {
		return chosen, errors.New("-remove-annotated is for MachinePools: set -kind")
	}
	return chosen, nil
}

// run runs a trial on its own stack.
func run(ctx context.Context, name string, args []string, do func(context.Context, *trial) (string, error)) error {
	sizes, err := parse(name, args)
	if err != nil {
		return err
	}
	return scene.Run(ctx, name, stack.Options{}, os.Getenv("CHAOS_KEEP") == "1", func(ctx context.Context, on *stack.Stack) (string, error) {
		result, err := do(ctx, &trial{Scene: scene.New(on, sizes.machines), sizes: sizes})
		return fmt.Sprintf("%s kind=%s", result, sizes.machines.Kind), err
	})
}
