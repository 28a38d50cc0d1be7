// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"flag"
	"fmt"
	"os"

	coreoptions "sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/utils/env"
)

// Options are the settings of the binary.
type Options struct {
	// Core are Karpenter's own settings.
	Core coreoptions.Options

	// ClusterName and ClusterNamespace name the Cluster whose machines Karpenter
	// makes. It is a setting of the operator and not of a template, so that whoever
	// writes templates cannot reach another Cluster's machines. Both may be empty
	// if exactly one Cluster is visible.
	ClusterName      string
	ClusterNamespace string

	// ClusterAPIKubeconfig is the path of a kubeconfig for the management cluster.
	// Empty if that is the workload cluster.
	ClusterAPIKubeconfig string

	// BindAddress is the address that metrics and health probes listen on; empty
	// for all addresses.
	BindAddress string

	// PrintVersion asks for the version instead of a running operator.
	PrintVersion bool
}

// ParseOptions reads the options from arguments and environment variables.
// Asked for help, it prints that and ends the process, as Karpenter does.
func ParseOptions(args ...string) (*Options, error) {
	o := &Options{}
	fs := &coreoptions.FlagSet{FlagSet: flag.NewFlagSet("karpenter-capi", flag.ContinueOnError)}
	o.Core.AddFlags(fs)
	fs.StringVar(&o.ClusterName, "cluster-name", env.WithDefaultString("CLUSTER_NAME", ""), "The name of the Cluster whose machines Karpenter makes. When unset, the only Cluster that is visible.")
	fs.StringVar(&o.ClusterNamespace, "cluster-namespace", env.WithDefaultString("CLUSTER_NAMESPACE", ""), "The namespace of the Cluster in the management cluster. When unset, any.")
	fs.StringVar(&o.ClusterAPIKubeconfig, "cluster-api-kubeconfig", env.WithDefaultString("CLUSTER_API_KUBECONFIG", ""), "The path of a kubeconfig for the management cluster, which has the Cluster API objects. When unset, the workload cluster is the management cluster.")
	fs.StringVar(&o.BindAddress, "bind-address", env.WithDefaultString("BIND_ADDRESS", ""), "The IP address that the metrics and health probe endpoints listen on. When unset, all addresses.")
	// Cluster API asks every manager for this flag (cluster-api: docs/book/src/developer/providers/contracts/clusterctl.md).
	fs.StringVar(&o.ClusterNamespace, "namespace", o.ClusterNamespace, "The same as --cluster-namespace, by its name in Cluster API's contract for clusterctl.")
	fs.BoolVar(&o.PrintVersion, "version", false, "Print the version of the operator, and of what it is made of, and exit.")
	// Core exits on -h and otherwise parses and checks its own flags with ours.
	if err := o.Core.Parse(fs, args...); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: all settings are flags", fs.Arg(0))
	}
	// As Karpenter's charts do, the Deployment tells where it is.
	o.Core.LeaderElectionNamespace = cmp.Or(o.Core.LeaderElectionNamespace, os.Getenv("SYSTEM_NAMESPACE"))
	return o, nil
}
