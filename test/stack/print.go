// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

func status(ctx context.Context, flags *flag.FlagSet, args []string) error {
	dir, err := parse(flags, args)
	if err != nil {
		return err
	}
	s, err := stack.Open(dir)
	if err != nil {
		return fmt.Errorf("%w\nstart one: %s", err, command("up", dir))
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
	fmt.Printf("Inspect it with: %s\nStop it with:    %s\n", command("status", s.Dir()), command("down", s.Dir()))
	if opts.WithoutOperator {
		env, operator := s.OperatorCommand()
		fmt.Printf("\nThe operator is not running. To run it:\n  %s \\\n    %s\n",
			strings.Join(env, " "), strings.Join(operator, " \\\n    "))
	}
}
