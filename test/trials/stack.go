// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// parse adds the flag that all commands have, and parses the arguments.
func parse(flags *flag.FlagSet, args []string) (dir string, err error) {
	flags.StringVar(&dir, "state-dir", stack.DefaultDir, "folder of the stack's state and logs")
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	if flags.NArg() > 0 {
		return "", fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return filepath.Abs(dir)
}

func up(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("stack-up", flag.ContinueOnError)
	opts := stack.Options{Progress: os.Stdout}
	flags.Var(&opts.Placement, "placement", stack.PlacementUsage)
	flags.BoolFunc("separate", "the same as --placement=workload", func(string) error { return opts.Placement.Set(string(stack.InWorkload)) })
	flags.BoolVar(&opts.Kubeadm, "kubeadm", false, "start the kubeadm bootstrap provider of Cluster API")
	flags.BoolVar(&opts.WithoutOperator, "without-operator", false, "do not start the operator, and print how to run it")
	flags.StringVar(&opts.BinDir, "bin-dir", "", "folder of the binaries (default: bin/ of this repository)")
	dir, err := parse(flags, args)
	if err != nil {
		return err
	}
	opts.Dir = dir
	fmt.Println("Starting a stack in", dir)
	s, err := stack.Up(ctx, opts)
	if running := (*stack.RunningError)(nil); errors.As(err, &running) {
		return fmt.Errorf("%w\ninspect it: %s\nstop it:    %s", err, stack.Command("status", dir), stack.Command("down", dir))
	}
	if err != nil {
		return err
	}
	s.Detach()
	printHowTo(s, opts)
	return nil
}

func down(ctx context.Context, args []string) error {
	dir, err := parse(flag.NewFlagSet("stack-down", flag.ContinueOnError), args)
	if err != nil {
		return err
	}
	s, err := stack.Open(dir)
	if notFound := (*stack.NotFoundError)(nil); errors.As(err, &notFound) {
		fmt.Println("Nothing to stop:", err)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Println("Stopping the stack in", dir)
	// It takes seconds, and half a stack is useless: an interrupt changes nothing.
	if err := s.Down(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	fmt.Println("Stopped. The logs are in", s.LogDir())
	return nil
}

func status(ctx context.Context, args []string) error {
	dir, err := parse(flag.NewFlagSet("stack-status", flag.ContinueOnError), args)
	if err != nil {
		return err
	}
	s, err := stack.Open(dir)
	if err != nil {
		return fmt.Errorf("%w\nstart one: %s", err, stack.Command("up", dir))
	}
	statuses := s.Status(ctx)
	ready := 0
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "COMPONENT\tPID\tPORT\tSTATE\tLOG")
	for _, c := range statuses {
		pid := "-"
		if c.PID > 0 {
			pid = fmt.Sprint(c.PID)
		}
		if c.Ready {
			ready++
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", c.Name, pid, c.Port, c.State, c.LogFile)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if ready < len(statuses) {
		return fmt.Errorf("%d of %d components are not ready", len(statuses)-ready, len(statuses))
	}
	return nil
}

// printHowTo prints what a user can do with a running stack.
func printHowTo(s *stack.Stack, opts stack.Options) {
	fmt.Printf("\nThe stack is running. To inspect it:\n  export KUBECONFIG=%s\n", s.Kubeconfig())
	if s.Separate() {
		fmt.Printf("and for Cluster API's objects, on a separate control plane:\n  export KUBECONFIG=%s\n", s.ManagementKubeconfig())
	}
	fmt.Printf("Its logs are in %s\n", s.LogDir())
	fmt.Printf("Inspect it with: %s\nStop it with:    %s\n", stack.Command("status", s.Dir()), stack.Command("down", s.Dir()))
	if opts.WithoutOperator {
		env, operator := s.OperatorCommand()
		fmt.Printf("\nThe operator is not running. To run it:\n  %s \\\n    %s\n",
			strings.Join(env, " "), strings.Join(operator, " \\\n    "))
	}
}
