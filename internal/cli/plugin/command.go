// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karpenter-capi/karpenter-capi/internal/build"
)

// NewCommand returns the command of the plugin.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return newCommand(streams, clusterSource())
}

func newCommand(streams genericiooptions.IOStreams, from source) *cobra.Command {
	command := &cobra.Command{
		Use:           "kubectl-karpenter_capi",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl karpenter-capi"},
		Short:         "Work with Karpenter for Cluster API",
		Version:       fmt.Sprint(build.Read()),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	command.SetIn(streams.In)
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	catalog := &cobra.Command{
		Use:   "catalog",
		Short: "Import, compare and apply InstanceTypeCatalogs",
	}
	catalog.AddCommand(newImport(streams), newDiff(streams), newApply(streams))
	command.AddCommand(catalog, newTree(from, streams), newWhy(from, streams), newOfferings(from, streams), newCost(from, streams), newDoctor(from, streams), newMigrate(from, streams), newRollout(from, streams))
	return command
}

// reported is the result of a command that found something and printed it, such as differences. It has no message.
type reported struct{}

// Error returns nothing.
func (reported) Error() string { return "" }

// comparisonFailed is an error of a comparison. Its exit code is another one than that of
// differences, as with kubectl diff.
type comparisonFailed struct{ error }

// Unwrap returns the error itself.
func (c comparisonFailed) Unwrap() error { return c.error }

// ExitCode returns the exit code for the result of a command.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.As(err, &comparisonFailed{}):
		return 2
	default:
		return 1
	}
}
