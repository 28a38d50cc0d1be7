// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/uninstall"
)

// uninstallCheckCommand is the subcommand that reports whether the operator can be uninstalled.
const uninstallCheckCommand = "uninstall-check"

// uninstallCheck prints what the operator would leave behind if it were uninstalled now. It returns
// uninstall.ErrNotSafe if that is anything. It has the settings of the operator.
func uninstallCheck(ctx context.Context, args []string, out io.Writer) error {
	options, err := operator.ParseOptions(args...)
	if err != nil {
		return err
	}
	workloadConfig, managementConfig, err := operator.Configs(ctx, options)
	if err != nil {
		return err
	}
	workload, err := client.New(workloadConfig, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return fmt.Errorf("connecting to the workload cluster %s: %w", clients.Server(workloadConfig), err)
	}
	management, err := client.New(managementConfig, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return fmt.Errorf("connecting to the management cluster %s: %w", clients.Server(managementConfig), err)
	}
	served, err := clients.FindCluster(ctx, management, options.ClusterNamespace, options.ClusterName)
	if err != nil {
		return err
	}
	finder := &uninstall.Finder{Workload: workload, Management: management, Mapper: management.RESTMapper(), Cluster: served}
	findings, err := finder.Find(ctx)
	if err != nil {
		return err
	}
	return uninstall.Print(out, served, findings)
}
