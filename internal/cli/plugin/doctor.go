// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/bundle"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/doctor"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

func newDoctor(from source, streams genericiooptions.IOStreams) *cobra.Command {
	var r *reader
	file := ""
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong in an installation, or will be",
		Long: "Look for what is wrong in an installation, or will be, and print what to do about it. The exit code is 1 if something\n" +
			"does not work or cannot be examined, and 0 if there are only warnings. With --bundle, it also collects what a bug report\n" +
			"needs: versions, objects, events and the operator's logs, without Secrets, bootstrap data and values of environment variables.",
		Example: "  kubectl karpenter-capi doctor\n" +
			"  kubectl karpenter-capi doctor --management-kubeconfig management.kubeconfig -o json\n" +
			"  kubectl karpenter-capi doctor --bundle bug.tar.gz",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx := command.Context()
			clusters, err := r.open(ctx)
			if err != nil {
				return err
			}
			v, unread := view.ReadSome(ctx, clusters, r.now())
			var results []doctor.Result
			if len(unread) == 0 { // what a check does not see would look as if it were missing
				results = doctor.Examine(ctx, v)
			}
			if file != "" {
				if err := r.writeBundle(ctx, v, unread, results, file); err != nil {
					return err
				}
			}
			if len(unread) > 0 {
				return errors.Join(unread...)
			}
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
	command.Flags().StringVar(&file, "bundle", "", "file to write an archive to with what a bug report needs, such as bug.tar.gz")
	lo.Must0(command.MarkFlagFilename("bundle", "tar.gz"))
	return command
}

// writeBundle writes the archive for a bug report to a file that only the user can read.
func (r *reader) writeBundle(ctx context.Context, v *view.View, unread []error, results []doctor.Result, file string) error {
	var checks, archive bytes.Buffer
	if len(unread) > 0 {
		checks.WriteString("nothing is examined, because objects cannot be read: see errors.txt\n")
	} else if err := printResults(&checks, results); err != nil {
		return err
	}
	collected := bundle.Collect(ctx, v, unread)
	collected.Checks(checks.Bytes())
	if err := collected.Write(&archive); err != nil {
		return err
	}
	if err := os.WriteFile(file, archive.Bytes(), 0o600); err != nil {
		return err
	}
	lacks := ""
	if count := len(collected.Unread); count > 0 {
		lacks = fmt.Sprintf(" It lacks %d things that could not be read, which its file errors.txt lists.", count)
	}
	_, err := fmt.Fprintf(r.streams.ErrOut, "%s has what a bug report needs.%s Look through it before you attach it: names and messages can be confidential.\n", file, lacks)
	return err
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
