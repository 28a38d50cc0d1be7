// SPDX-License-Identifier: Apache-2.0

// Package ask runs commands of the kubectl plugin for the clusters of a stack, in the process of the test or trial.
package ask

import (
	"context"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/plugin"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// Run runs a command, such as tree, and returns what it prints to both outputs.
func Run(ctx context.Context, on *stack.Stack, arguments ...string) (out, messages string, err error) {
	streams, _, printed, errors := genericiooptions.NewTestIOStreams()
	command := plugin.NewCommand(streams)
	command.SetArgs(append(arguments, Flags(on)...))
	err = command.ExecuteContext(ctx)
	return printed.String(), errors.String(), err
}

// Flags are the flags of all commands that read the clusters of a stack.
func Flags(on *stack.Stack) []string {
	return []string{"--kubeconfig", on.Kubeconfig(), "--management-kubeconfig", on.ManagementKubeconfig()}
}
