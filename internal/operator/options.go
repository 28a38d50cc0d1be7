// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"

	coreoptions "sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/utils/env"

	"github.com/karpenter-capi/karpenter-capi/internal/signals"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

// Options are the settings of the binary.
type Options struct {
	// Core are Karpenter's own settings.
	Core coreoptions.Options

	// ClusterName and ClusterNamespace name the Cluster for which Karpenter creates
	// machines. This is a setting of the operator and not of a template, so that users who
	// write templates cannot reach the machines of another Cluster. Both can be empty if
	// exactly one Cluster is visible.
	ClusterName      string
	ClusterNamespace string

	// ClusterAPIKubeconfig is the path of a kubeconfig for the management cluster.
	// Empty if the operator runs in that cluster.
	ClusterAPIKubeconfig string

	// WorkloadKubeconfig is the path of a kubeconfig for the workload cluster, such as that in
	// Cluster API's Secret <cluster>-kubeconfig. Empty if the operator runs in that cluster.
	WorkloadKubeconfig string

	// BindAddress is the address on which the endpoints for metrics and health probes
	// listen; empty for all addresses.
	BindAddress string

	// InsecureDiagnostics serves metrics by HTTP and to every client. Without it, they are served by
	// HTTPS, and the API server authenticates and authorizes each client.
	InsecureDiagnostics bool

	// MetricsCertPath is a folder with tls.crt and tls.key, the certificate of the metrics endpoint and its key. If
	// empty, the operator signs a certificate itself at each start.
	MetricsCertPath string

	// AllEvents publishes all events of Karpenter core, including those that repeat what an object shows.
	AllEvents bool

	// OfferingPriceMetrics serves a metric with the price of each offering.
	OfferingPriceMetrics bool

	// InterruptionSignals are the taints and conditions of Nodes that announce that an
	// instance ends.
	InterruptionSignals signals.Signals

	// Allowed is what templates may refer to in the management cluster.
	Allowed tenancy.Rules

	// NodeName is the name of the Node on which the operator runs; empty if that is unknown.
	NodeName string

	// PrintVersion reports whether to print the versions instead of running the operator.
	PrintVersion bool
}

// ParseOptions reads the options from arguments and environment variables.
// With -h, it prints the help and ends the process, as Karpenter does.
func ParseOptions(args ...string) (*Options, error) {
	o := &Options{}
	fs := &coreoptions.FlagSet{FlagSet: flag.NewFlagSet("karpenter-capi", flag.ContinueOnError)}
	o.Core.AddFlags(fs)
	fs.StringVar(&o.ClusterName, "cluster-name", env.WithDefaultString("CLUSTER_NAME", ""), "The name of the Cluster for which Karpenter creates machines. If unset, the only Cluster that is visible.")
	fs.StringVar(&o.ClusterNamespace, "cluster-namespace", env.WithDefaultString("CLUSTER_NAMESPACE", ""), "The namespace of the Cluster in the management cluster. If unset, any namespace.")
	fs.StringVar(&o.ClusterAPIKubeconfig, "cluster-api-kubeconfig", env.WithDefaultString("CLUSTER_API_KUBECONFIG", ""), "The path of a kubeconfig for the management cluster, which has the Cluster API objects. If unset, the operator runs in it.")
	fs.StringVar(&o.WorkloadKubeconfig, "workload-kubeconfig", env.WithDefaultString("WORKLOAD_KUBECONFIG", ""), "The path of a kubeconfig for the workload cluster, which has the Pods. If unset, the operator runs in it.")
	fs.StringVar(&o.BindAddress, "bind-address", env.WithDefaultString("BIND_ADDRESS", ""), "The IP address on which the metrics and health probe endpoints listen. If unset, all addresses.")
	// Cluster API's managers have a flag with this name and meaning.
	fs.BoolVarWithEnv(&o.InsecureDiagnostics, "insecure-diagnostics", "INSECURE_DIAGNOSTICS", false, "Serve metrics by HTTP and to every client. If unset, they are served by HTTPS, and clients need a token and the right to get the URL.")
	// Managers that kubebuilder generates have a flag with this name and meaning.
	fs.StringVar(&o.MetricsCertPath, "metrics-cert-path", env.WithDefaultString("METRICS_CERT_PATH", ""), "The folder with tls.crt and tls.key, the certificate of the metrics endpoint and its key. Changes of these files are followed. If unset, the operator signs a certificate itself.")
	fs.BoolVarWithEnv(&o.AllEvents, "all-events", "ALL_EVENTS", false, "Publish an event for each condition of a NodeClaim or Node that changes, and for each finalizer that is removed, and repeat every few minutes why a Node is not disrupted. These are most events in a large cluster. Failures, nominations and disruptions are published in any case.")
	fs.BoolVarWithEnv(&o.OfferingPriceMetrics, "offering-price-metrics", "OFFERING_PRICE_METRICS", false, "Serve a metric with the price of each offering. There can be thousands of offerings.")
	announce := fs.String("interruption-signals", env.WithDefaultString("INTERRUPTION_SIGNALS", signals.Default), "Taints and conditions of Nodes that announce that an instance ends, separated by commas: taint:KEY[=VALUE][:EFFECT], condition:TYPE=STATUS, default for those of the common termination handlers, or only none.")
	allowedSecrets := fs.String("allowed-secrets", env.WithDefaultString("ALLOWED_SECRETS", ""), "Secrets of the Cluster's namespace that templates may refer to, in addition to those that the Cluster's own base templates name, separated by commas: names, in which * stands for any characters, and at most one label:KEY[=VALUE], for which the operator needs the right to list Secrets.")
	allowedBases := fs.String("allowed-base-templates", env.WithDefaultString("ALLOWED_BASE_TEMPLATES", ""), "The base templates that templates may refer to, separated by commas: KIND/NAME, in which * stands for any characters. If unset, all of the Cluster's namespace except those of other Clusters.")
	reservedFields := fs.String("reserved-fields", env.WithDefaultString("RESERVED_FIELDS", ""), "Changes to the fields and labels that only base templates can set, separated by commas: KIND.FIELD or label:KEY reserves one more, and the same after - lets templates set it. KIND is that of a machine or machine pool, without Template, and * stands for any characters.")
	fs.StringVar(&o.NodeName, "node-name", env.WithDefaultString("NODE_NAME", ""), "The name of the Node on which the operator runs. While the Cluster is being deleted, the operator removes the hooks of this Node's Machine last. The Deployment sets it.")
	// Cluster API requires this flag of every manager (cluster-api: docs/book/src/developer/providers/contracts/clusterctl.md).
	fs.StringVar(&o.ClusterNamespace, "namespace", o.ClusterNamespace, "The same as --cluster-namespace, under the name from Cluster API's contract for clusterctl.")
	fs.BoolVar(&o.PrintVersion, "version", false, "Print the versions of the operator, Karpenter, Cluster API and Go, and exit.")
	// Core exits on -h. Otherwise it parses its own flags together with these, and checks its own.
	if err := o.Core.Parse(fs, args...); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: all settings are flags", fs.Arg(0))
	}
	if o.ClusterAPIKubeconfig != "" && o.WorkloadKubeconfig != "" {
		return nil, errors.New("--cluster-api-kubeconfig and --workload-kubeconfig are both set: the operator runs in one of the two clusters, so set only the kubeconfig of the other")
	}
	var err error
	if o.InterruptionSignals, err = signals.Parse(*announce); err != nil {
		return nil, fmt.Errorf("--interruption-signals: %w", err)
	}
	if o.Allowed, err = tenancy.Parse(*allowedSecrets, *allowedBases, *reservedFields); err != nil {
		return nil, err
	}
	if o.InsecureDiagnostics && o.Core.EnableProfiling && !loopback(o.BindAddress) {
		return nil, errors.New("--enable-profiling with --insecure-diagnostics would show the operator's memory to every client: remove --insecure-diagnostics, or set --bind-address=127.0.0.1")
	}
	if o.InsecureDiagnostics && o.MetricsCertPath != "" {
		return nil, errors.New("--metrics-cert-path is set, but --insecure-diagnostics serves metrics by HTTP: remove one of them")
	}
	// The Deployment sets SYSTEM_NAMESPACE, as in Karpenter's charts.
	o.Core.LeaderElectionNamespace = cmp.Or(o.Core.LeaderElectionNamespace, os.Getenv("SYSTEM_NAMESPACE"))
	if o.WorkloadKubeconfig != "" {
		o.inManagementCluster()
	}
	return o, nil
}

// inManagementCluster changes what depends on the cluster in which the operator runs. There may be more operators in its
// namespace, one for each Cluster, so the lease has the name of the Cluster. The Node on which the operator runs has no
// Machine of this Cluster, even if a Node of the workload cluster has the same name.
func (o *Options) inManagementCluster() {
	if o.Core.LeaderElectionName == defaultLease && o.ClusterName != "" && o.ClusterNamespace != "" {
		o.Core.LeaderElectionName = LeaseOf(o.ClusterNamespace, o.ClusterName)
	}
	o.NodeName = ""
}

// defaultLease is Karpenter core's default of --leader-election-name.
const defaultLease = "karpenter-leader-election"

// LeaseOf returns the name of the lease of a Cluster's operator in the management cluster. No namespace contains a dot, so
// the names of two Clusters differ.
func LeaseOf(namespace, name string) string {
	return defaultLease + "." + namespace + "." + name
}
