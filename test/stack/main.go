// SPDX-License-Identifier: Apache-2.0

// Command stack starts, stops and inspects a local stack: a Kubernetes control plane, Cluster API, simulated machines
// and the operator, each a process on this machine. See the README in this folder.
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

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

const usage = `Runs Karpenter, Cluster API and simulated machines on this computer.

Usage:
  stack up      start a stack, and wait until it is ready
  stack down    stop it, and keep its logs
  stack status  show its processes

Each takes -h for its flags.
`

// defaultDir is the state folder, relative to the root of the repository.
const defaultDir = ".stack"

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	commands := map[string]func(context.Context, *flag.FlagSet, []string) error{
		"up": up, "down": down, "status": status,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(os.Stderr, usage)
		return errors.New("no command: use up, down or status")
	}
	return commands[args[0]](ctx, flag.NewFlagSet("stack "+args[0], flag.ContinueOnError), args[1:])
}

// parse adds the flag that all commands have, and parses the arguments.
func parse(flags *flag.FlagSet, args []string) (dir string, err error) {
	flags.StringVar(&dir, "state-dir", defaultDir, "folder of the stack's state and logs")
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	if flags.NArg() > 0 {
		return "", fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return filepath.Abs(dir)
}

func up(ctx context.Context, flags *flag.FlagSet, args []string) error {
	opts := stack.Options{Progress: os.Stdout}
	flags.Var(&opts.Placement, "placement", stack.PlacementUsage)
	flags.BoolFunc("separate", "the same as --placement=workload", func(string) error { return opts.Placement.Set(string(stack.InWorkload)) })
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
		return fmt.Errorf("%w\ninspect it: %s\nstop it:    %s", err, command("status", dir), command("down", dir))
	}
	if err != nil {
		return err
	}
	s.Detach()
	printHowTo(s, opts)
	return nil
}

func down(ctx context.Context, flags *flag.FlagSet, args []string) error {
	dir, err := parse(flags, args)
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

// command is how a user runs this program again.
func command(name, dir string) string {
	if byDefault, err := filepath.Abs(defaultDir); err == nil && dir == byDefault {
		return "make stack-" + name
	}
	return fmt.Sprintf("go run ./test/stack %s --state-dir %s", name, dir)
}
