// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/tree"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// watchInterval is how often --watch looks at the caches, which watch both clusters.
const watchInterval = time.Second

func newTree(from source, streams genericiooptions.IOStreams) *cobra.Command {
	kinds := lo.Keys(tree.Kinds)
	slices.Sort(kinds)
	watch := false
	var r *reader
	command := &cobra.Command{
		Use:   "tree [nodepool|nodeclaim|node|machine|template NAME]",
		Short: "Show which objects belong to a NodePool, from the template to the Node",
		Long: "Show NodePools with their templates, NodeClaims, MachineDeployments or MachinePools, Machines, infrastructure and\n" +
			"bootstrap objects and Nodes: the age, state and price per hour of each, and the condition that blocks it.",
		Example: "  kubectl karpenter-capi tree\n" +
			"  kubectl karpenter-capi tree nodepool general\n" +
			"  kubectl karpenter-capi tree node worker-1 --management-kubeconfig management.kubeconfig -o wide",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 2 && tree.Kinds[args[0]] != "" {
				return nil
			}
			return fmt.Errorf("%q: expected nothing, or one of %s and a name", strings.Join(args, " "), strings.Join(kinds, ", "))
		},
		ValidArgs: kinds,
		RunE: func(command *cobra.Command, args []string) error {
			ctx := command.Context()
			clusters, err := r.open(ctx)
			if err != nil {
				return err
			}
			show := func(out io.Writer) error {
				v, err := view.Read(ctx, clusters, r.now())
				if err != nil {
					return err
				}
				items := tree.Of(ctx, v)
				if len(args) == 2 {
					if items = tree.Only(items, tree.Kinds[args[0]], args[1]); len(items) == 0 {
						return fmt.Errorf("%s %s: it does not exist, or belongs to no NodePool with a template", args[0], args[1])
					}
				}
				return r.print(out, items, func(out io.Writer) error {
					return printTree(out, items, v.Now, r.format == "wide", isTerminal(r.streams.Out))
				})
			}
			if !watch {
				return show(r.streams.Out)
			}
			return r.watch(ctx, show)
		},
	}
	r = newReader(from, streams, command, "wide")
	command.Flags().BoolVarP(&watch, "watch", "w", false, "show the tree again when it changes")
	return command
}

// watch shows something again whenever that changes, until the context ends. On a terminal, it replaces what was shown before.
func (r *reader) watch(ctx context.Context, show func(io.Writer) error) error {
	last := ""
	for {
		var buffer bytes.Buffer
		if err := show(&buffer); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if shown := buffer.String(); shown != last {
			if isTerminal(r.streams.Out) {
				shown = "\033[H\033[2J" + shown
			} else if last != "" {
				shown = "\n" + shown
			}
			if _, err := io.WriteString(r.streams.Out, shown); err != nil {
				return err
			}
			last = buffer.String()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchInterval):
		}
	}
}

// printTree prints trees as a table. With wide, it has the offering of each object, and problems in full.
func printTree(out io.Writer, items []*tree.Item, now time.Time, wide, colored bool) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(out, "no NodePool uses a KarpenterMachineTemplate, and no template exists")
		return err
	}
	headers := []string{"NAME", "AGE", "STATE", "PRICE/H", "PROBLEM"}
	if wide {
		headers = slices.Insert(headers, 3, "OFFERING")
	}
	var rows [][]string
	var bad []bool
	var add func(items []*tree.Item, indent string, top bool)
	add = func(items []*tree.Item, indent string, top bool) {
		for i, item := range items {
			branch, below := "├─", "│ "
			switch {
			case top:
				branch, below = "", ""
			case i == len(items)-1:
				branch, below = "└─", "  "
			}
			problem := item.Problem
			if !wide {
				problem = shorten(problem)
			}
			row := []string{indent + branch + item.String(), age(now, item.Created), lo.CoalesceOrEmpty(item.State, "–"), price(item.PricePerHour), problem}
			if wide {
				row = slices.Insert(row, 3, lo.CoalesceOrEmpty(item.Offering, "–"))
			}
			rows, bad = append(rows, row), append(bad, item.Problem != "")
			add(item.Children, indent+below, false)
		}
	}
	add(items, "", true)
	var plain bytes.Buffer
	if err := table(&plain, headers, rows); err != nil {
		return err
	}
	lines := strings.SplitAfter(plain.String(), "\n")
	var errs []error
	for i, line := range lines {
		if colored && i > 0 && i <= len(bad) && bad[i-1] {
			line = "\033[33m" + strings.TrimSuffix(line, "\n") + "\033[0m\n"
		}
		_, err := io.WriteString(out, line)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// shorten cuts a long text.
func shorten(text string) string {
	const most = 100
	if runes := []rune(text); len(runes) > most {
		return strings.TrimSpace(string(runes[:most-1])) + "…"
	}
	return text
}
