// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/why"
)

// documentation is where the pages of the documentation are.
const documentation = "https://github.com/karpenter-capi/karpenter-capi/blob/main/"

func newWhy(from source, streams genericiooptions.IOStreams) *cobra.Command {
	var r *reader
	command := &cobra.Command{
		Use:   "why pod|nodeclaim|machine|node|template NAME",
		Short: "Explain why a Pod, NodeClaim, Machine, Node or template is in its state, and what to do",
		Long: "Explain why a Pod is pending, why a NodeClaim, Machine or Node is in its state, or why a template launches nothing: the\n" +
			"objects between the question and the cause with their states, the cause, and what to do.",
		Example: "  kubectl karpenter-capi why pod web-1 --namespace shop\n" +
			"  kubectl karpenter-capi why nodeclaim general-x7k2p\n" +
			"  kubectl karpenter-capi why template general\n" +
			"  kubectl karpenter-capi why machine general-m5-large-abcde --management-kubeconfig management.kubeconfig",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 2 && slices.Contains(why.Kinds, args[0]) {
				return nil
			}
			return fmt.Errorf("%q: expected one of %s and a name", strings.Join(args, " "), strings.Join(why.Kinds, ", "))
		},
		ValidArgs: why.Kinds,
		RunE: func(command *cobra.Command, args []string) error {
			namespace, err := r.namespace()
			if err != nil {
				return err
			}
			v, err := r.read(command.Context())
			if err != nil {
				return err
			}
			answer, err := why.Ask(command.Context(), v, args[0], namespace, args[1])
			if err != nil {
				return err
			}
			return r.print(r.streams.Out, answer, func(out io.Writer) error { return printAnswer(out, answer) })
		},
	}
	r = newReader(from, streams, command)
	return command
}

// printAnswer prints the objects, the cause, and what to do.
func printAnswer(out io.Writer, answer *why.Answer) error {
	rows := make([][]string, len(answer.Steps))
	for i, step := range answer.Steps {
		rows[i] = []string{step.String(), step.State, shorten(step.Problem)}
	}
	if err := table(out, []string{"OBJECT", "STATE", "PROBLEM"}, rows); err != nil {
		return err
	}
	w := &errWriter{out: out}
	w.printf("\nCause: %s.\n", strings.TrimSuffix(answer.Cause, "."))
	if answer.Do != "" {
		w.printf("To do: %s.\n", strings.TrimSuffix(answer.Do, "."))
	}
	if answer.See != "" {
		w.printf("See:   %s%s\n", documentation, answer.See)
	}
	return w.err
}
