// SPDX-License-Identifier: Apache-2.0

// Command chaos shows on a local stack that the operator can be killed at any time, and that it is quiet when nothing
// is left to do.
//
//	chaos         the operator is killed every few seconds while many claims are launched, and later removed; so
//	              are kube-apiserver and Cluster API, less often. etcd is paused, and so is the operator while etcd is
//	              compacted. Everything must settle, and no invariant of docs/design may ever be violated, see
//	              package history. The flag -seed repeats a run.
//	chaos quiet   with many settled claims, the operator writes nothing, not even after a restart. See quiet.go.
//
// The last line is the result; the exit code is 1 on any failure. The logs stay in the state folder, among them
// history.log, which has the changes of each claim and Machine. With CHAOS_KEEP=1 the stack is left up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/karpenter-capi/karpenter-capi/test/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	name, trial, args := "chaos", chaos, os.Args[1:]
	if len(args) > 0 && args[0] == "quiet" {
		name, trial, args = "quiet", quiet, args[1:]
	}
	sizes, err := parse(name, args)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(ctx, name, sizes, trial)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: failed: %v\n", name, err)
		os.Exit(1)
	}
}

// sizes are the parameters of a trial.
type sizes struct {
	// pods is the maximum number of Pods, each of which needs its own Node.
	pods int
	// kills is how often the operator is killed while they are created.
	kills int
	// failing is the share of the machines of instance type a that fail, in percent. Those are more than half of all.
	failing int
	// launchTimeout is how long the launch of a machine can take.
	launchTimeout time.Duration
	// seed of the random choices.
	seed uint64
	// period is how long the operator must be quiet.
	period time.Duration
	// kind is the kind of scalable resource.
	kind kinds.Kind
	// removeAnnotated makes the provider of MachinePools behave like Azure's.
	removeAnnotated bool
}

func parse(name string, args []string) (sizes, error) {
	byDefault := sizes{pods: 150, kills: 18, failing: 8, launchTimeout: 90 * time.Second, seed: uint64(time.Now().UnixNano()), period: 30 * time.Second}
	if name == "quiet" {
		byDefault.pods, byDefault.failing, byDefault.period = 200, 0, 2*time.Minute
		byDefault.launchTimeout = launchWithin
	}
	chosen := sizes{kind: kinds.MachineDeployment}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.IntVar(&chosen.pods, "pods", byDefault.pods, "number of Pods, and so of claims")
	flags.IntVar(&chosen.kills, "kills", byDefault.kills, "how often the operator is killed while the Pods are created")
	flags.IntVar(&chosen.failing, "failing", byDefault.failing, "share of the machines of instance type a, more than half of all, that fail, in percent")
	flags.DurationVar(&chosen.launchTimeout, "launch-timeout", byDefault.launchTimeout, "how long the launch of a machine can take")
	flags.Uint64Var(&chosen.seed, "seed", byDefault.seed, "seed of the random choices; default: the time")
	flags.DurationVar(&chosen.period, "period", byDefault.period, "how long the operator must be quiet")
	flags.Var(&chosen.kind, "kind", kinds.Usage)
	flags.BoolVar(&chosen.removeAnnotated, "remove-annotated", false, "make the provider of MachinePools remove annotated machines even if replicas were not lowered, as Azure's does")
	if err := flags.Parse(args); err != nil {
		return chosen, err
	}
	if flags.NArg() > 0 {
		return chosen, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if chosen.removeAnnotated && chosen.kind != kinds.MachinePool {
		return chosen, errors.New("-remove-annotated is for MachinePools: set -kind")
	}
	return chosen, nil
}

// run runs a trial on its own stack, and prints its last line.
func run(ctx context.Context, name string, sizes sizes, trial func(context.Context, *scene) (string, error)) error {
	began := time.Now()
	fmt.Println("==> a local stack: Kubernetes, Cluster API, simulated machines and the operator")
	on, err := stack.Up(ctx, stack.Options{Dir: filepath.Join(".stack", name), Progress: os.Stdout})
	if running := (*stack.RunningError)(nil); errors.As(err, &running) {
		return fmt.Errorf("%w\nstop it: go run ./test/stack down --state-dir %s", err, running.Dir)
	}
	if err != nil {
		return err
	}
	result, err := trial(ctx, newScene(on, sizes))
	if err != nil {
		err = fmt.Errorf("%w\nThe logs are in %s", err, on.LogDir())
	}
	if os.Getenv("CHAOS_KEEP") == "1" && ctx.Err() == nil {
		on.Detach()
		fmt.Printf("\nThe stack is still running: export KUBECONFIG=%s\nStop it with: go run ./test/stack down --state-dir %s\n", on.Kubeconfig(), on.Dir())
	} else {
		fmt.Println("\n==> stop the stack")
		err = errors.Join(err, on.Down(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s: ok %s kind=%s seconds=%.0f\n", name, result, sizes.kind, time.Since(began).Seconds())
	return nil
}
