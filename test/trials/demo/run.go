// SPDX-License-Identifier: Apache-2.0

// Package demo shows the whole path on a local stack: Pods wait, Karpenter decides, MachineDeployments and their
// infrastructure templates are generated, Machines become Nodes, Pods run; the Pods are deleted, and everything that
// was generated is deleted. With -kind MachinePool it uses MachinePools. It fails with the reason if a step does not
// happen. With DEMO_KEEP=1 it leaves the stack up.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
	"github.com/karpenter-capi/karpenter-capi/test/trials/demo/manifests"
)

// Run shows the whole path, or prints the manifests.
func Run(ctx context.Context, args []string) error {
	kind, placement := kinds.MachineDeployment, stack.Joined
	act := func(ctx context.Context, kind kinds.Kind) error { return show(ctx, kind, placement) }
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.Var(&kind, "kind", kinds.Usage)
	flags.Var(&placement, "placement", stack.PlacementUsage)
	flags.BoolFunc("print", "print the manifests and exit", func(string) error {
		act = func(_ context.Context, kind kinds.Kind) error { return manifests.Print(os.Stdout, kind) }
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return act(ctx, kind)
}

func show(ctx context.Context, kind kinds.Kind, placement stack.Placement) error {
	began := time.Now()
	fmt.Printf("==> a local stack, placement %s: Kubernetes, Cluster API, simulated machines and the operator\n", placement)
	on, err := stack.Up(ctx, stack.Options{Dir: filepath.Join(".stack", "demo"), Placement: placement, Kubeadm: true, Progress: os.Stdout})
	if running := (*stack.RunningError)(nil); errors.As(err, &running) {
		return fmt.Errorf("%w\nstop it: %s", err, stack.Command("down", running.Dir))
	}
	if err != nil {
		return err
	}
	story := newStory(on, kind)
	err = story.tell(ctx)
	if err != nil && ctx.Err() == nil {
		// The stack can be part of the problem, and not respond.
		limited, cancel := context.WithTimeout(ctx, 20*time.Second)
		err = fmt.Errorf("%w\n%s\nThe logs are in %s", err, story.diagnosis(limited), on.LogDir())
		cancel()
	}
	if os.Getenv("DEMO_KEEP") == "1" && ctx.Err() == nil {
		on.Detach()
		lookAround(on, kind)
	} else {
		fmt.Println("\n==> stop the stack")
		err = errors.Join(err, on.Down(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return err
	}
	fmt.Printf("\n==> what ran after the consolidation\n%s\n", story.seen)
	fmt.Printf("demo: ok placement=%s pods=%d nodes=%d %s=%d templates=%d machines_left=%d templates_left=%d seconds=%.0f\n",
		placement, manyPods, story.most.Nodes, kind.Plural(), story.most.Resources, story.most.templates, story.now.Machines, story.now.templates, time.Since(began).Seconds())
	return nil
}

// looksOf are the kinds of Cluster API's objects to list.
var looksOf = map[kinds.Kind]string{
	kinds.MachineDeployment: "simulatedmachinetemplates,machinedeployments",
	kinds.MachinePool:       "simulatedmachinepooltemplates,simulatedmachinepools,machinepools",
}

func lookAround(on *stack.Stack, kind kinds.Kind) {
	fmt.Printf(`
The stack is still running. To inspect it, run in the root of the repository:
  export KUBECONFIG=%s PATH=$PWD/bin:$PATH
  trials demo -kind %s -print | kubectl apply -f -
  kubectl get karpentermachinetemplates,nodepools,nodeclaims,nodes
  kubectl get %s,machines -A
  %s
The logs are in %s. To stop the stack:
  %s

`, on.Kubeconfig(), kind, looksOf[kind], live(on), on.LogDir(), stack.Command("down", on.Dir()))
}
