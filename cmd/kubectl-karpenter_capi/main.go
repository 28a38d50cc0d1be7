// SPDX-License-Identifier: Apache-2.0

// Command kubectl-karpenter_capi is the kubectl plugin "kubectl karpenter-capi". It imports
// InstanceTypeCatalogs from what the command lines of clouds print, compares them with those of a
// cluster, and applies them.
package main

import (
	"fmt"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/plugin"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	err := plugin.NewCommand(streams).ExecuteContext(ctrl.SetupSignalHandler())
	if err != nil && err.Error() != "" {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
	}
	os.Exit(plugin.ExitCode(err))
}
