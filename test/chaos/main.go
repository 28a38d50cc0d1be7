// SPDX-License-Identifier: Apache-2.0

// Command chaos shows on a local stack that the operator may be killed at any moment, and that it is quiet when there
// is nothing to do.
//
//	chaos         the operator is killed every few seconds while many claims are launched, and later removed; so are, now
//	              and then, kube-apiserver and Cluster API. Everything must settle, and no invariant of docs/design may
//	              ever be broken, see package history.
//	chaos quiet   with many settled claims, the operator writes nothing; nor does it after a restart. See quiet.go.
//
// The last line says how it went; the exit code is 1 if anything is not as it must be. The logs stay in the state
// folder, among them history.log, which tells what became of each claim and Machine. With CHAOS_KEEP=1 the stack is
// left up.
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

// sizes are what can be chosen.
type sizes struct {
	// pods is how many Pods there are at most, each of which needs a Node of its own.
	pods int
	// kills is how often the operator is killed while they come.
	kills int
	// failing is the share of the machines of instance type a that fail, in percent. Those are more than half of all.
	failing int
	// launchTimeout is how long a machine may take to come up.
	launchTimeout time.Duration
	// seed of what is chosen at random.
	seed uint64
	// period is for how long the operator must be quiet.
	period time.Duration
	// kind of scalable resource.
	kind kinds.Kind
	// removeAnnotated makes the provider of MachinePools like Azure's.
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
	flags.IntVar(&chosen.kills, "kills", byDefault.kills, "how often the operator is killed while the Pods come")
	flags.IntVar(&chosen.failing, "failing", byDefault.failing, "share of the machines of instance type a, more than half of all, that fail, in percent")
	flags.DurationVar(&chosen.launchTimeout, "launch-timeout", byDefault.launchTimeout, "how long a machine may take to come up")
	flags.Uint64Var(&chosen.seed, "seed", byDefault.seed, "of what is chosen at random; the time by default")
	flags.DurationVar(&chosen.period, "period", byDefault.period, "for how long the operator must be quiet")
	flags.Var(&chosen.kind, "kind", kinds.Usage)
	flags.BoolVar(&chosen.removeAnnotated, "remove-annotated", false, "let the provider of MachinePools remove annotated machines also if replicas were not lowered, as Azure's does")
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

// run runs a trial on a stack of its own, and prints its last line.
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
		fmt.Printf("\nThe stack is still up: export KUBECONFIG=%s\nStop it with: go run ./test/stack down --state-dir %s\n", on.Kubeconfig(), on.Dir())
	} else {
		fmt.Println("\n==> take the stack down")
		err = errors.Join(err, on.Down(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s: ok %s kind=%s seconds=%.0f\n", name, result, sizes.kind, time.Since(began).Seconds())
	return nil
}
