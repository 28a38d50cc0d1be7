// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/doctor"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

func newDoctor(from source, streams genericiooptions.IOStreams) *cobra.Command {
	var r *reader
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong in an installation, or will be",
		Long: "Look for what is wrong in an installation, or will be, and print what to do about it. The exit code is 1 if something\n" +
			"does not work or cannot be examined, and 0 if there are only warnings.",
		Example: "  kubectl karpenter-capi doctor\n  kubectl karpenter-capi doctor --management-kubeconfig management.kubeconfig -o json",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			v, err := r.read(command.Context())
			if err != nil {
				return err
			}
			results := doctor.Examine(command.Context(), v)
			if err := r.print(r.streams.Out, results, func(out io.Writer) error { return printResults(out, results) }); err != nil {
				return err
			}
			if doctor.HasProblems(results) {
				return reported{}
			}
			return nil
		},
	}
	r = newReader(from, streams, command)
	return command
}

// printResults prints each check, and below it what it has found.
func printResults(out io.Writer, results []doctor.Result) error {
	w := &errWriter{out: out}
	for _, result := range results {
		switch {
		case result.Error != "":
			w.printf("?  %s\n   cannot be examined: %s\n", result.Sound, result.Error)
		case len(result.Findings) == 0:
			w.printf("✓  %s\n", result.Sound)
		default:
			w.printf("✗  %s\n", result.Sound)
		}
		for _, f := range result.Findings {
			w.printf("   %s %s: %s\n", f.Level, f.Object, strings.TrimSuffix(view.OneLine(f.Message), "."))
			if f.Do != "" {
				w.printf("     To do: %s.\n", strings.TrimSuffix(f.Do, "."))
			}
		}
	}
	return w.err
}
