// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

// patience is how long a cache may take to get the objects of a kind. After that, fill lists one of them, to see whether the
// user may.
const patience = 5 * time.Second

// Options are the flags that name both clusters and the Cluster.
type Options struct {
	// Workload are kubectl's flags, for the workload cluster.
	Workload *genericclioptions.ConfigFlags
	// managementKubeconfig and managementContext are empty if the management cluster is the same.
	managementKubeconfig, managementContext string
	clusterNamespace, clusterName           string
}

// NewOptions returns options without values.
func NewOptions() *Options {
	return &Options{Workload: genericclioptions.NewConfigFlags(true)}
}

// AddFlags adds the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Workload.AddFlags(flags)
	flags.StringVar(&o.managementKubeconfig, "management-kubeconfig", "", "kubeconfig of the management cluster; default: the workload cluster is the management cluster")
	flags.StringVar(&o.managementContext, "management-context", "", "context of the management cluster in its kubeconfig")
	flags.StringVar(&o.clusterNamespace, "cluster-namespace", "", "namespace of the Cluster; default: that of the only Cluster")
	flags.StringVar(&o.clusterName, "cluster-name", "", "name of the Cluster; default: that of the only Cluster")
}

// configs returns the client configurations of both clusters.
func (o *Options) configs() (workload, management *rest.Config, err error) {
	if workload, err = o.Workload.ToRESTConfig(); err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig of the workload cluster: %w", err)
	}
	management = rest.CopyConfig(workload)
	if o.managementKubeconfig != "" || o.managementContext != "" {
		flags := genericclioptions.NewConfigFlags(true)
		flags.Context = &o.managementContext
		if o.managementKubeconfig != "" {
			flags.KubeConfig = &o.managementKubeconfig
		}
		if management, err = flags.ToRESTConfig(); err != nil {
			return nil, nil, fmt.Errorf("reading the kubeconfig of the management cluster: %w", err)
		}
	}
	for _, config := range []*rest.Config{workload, management} {
		config.QPS = -1 // API Priority and Fairness limits users
	}
	return workload, management, nil
}

// Connect returns the clients of both clusters. Their caches are filled when something is read, until the context ends.
func (o *Options) Connect(ctx context.Context) (*clients.Clusters, error) {
	workload, management, err := o.configs()
	if err != nil {
		return nil, err
	}
	clusters := &clients.Clusters{}
	if clusters.Workload, err = cluster.New(workload, func(options *cluster.Options) { options.Scheme = scheme.Scheme }); err != nil {
		return nil, fmt.Errorf("workload cluster %s: %w", clients.Server(workload), err)
	}
	live, err := client.New(management, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("management cluster %s: %w", clients.Server(management), err)
	}
	if clusters.Cluster, err = clients.FindCluster(ctx, live, o.clusterNamespace, o.clusterName); err != nil {
		return nil, fmt.Errorf("management cluster %s: %w", clients.Server(management), err)
	}
	if clusters.Management, err = clients.NewManagement(ctx, management, clusters.Cluster, tenancy.Rules{}); err != nil {
		return nil, err
	}
	if err := clients.IndexNodeClaims(ctx, clusters.Workload.GetFieldIndexer()); err != nil {
		return nil, err
	}
	start(ctx, clusters.Workload, clusters.Management)
	return clusters, nil
}

// WorkloadClient returns a client for the workload cluster that reads from the API server. It needs no management cluster.
func (o *Options) WorkloadClient() (client.Client, error) {
	config, err := o.Workload.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the workload cluster: %w", err)
	}
	return client.New(config, client.Options{Scheme: scheme.Scheme})
}

// start starts the caches of clusters. It waits until they have started, which they show by having what is indexed. If they do
// not get that in time, fill returns why.
func start(ctx context.Context, all ...cluster.Cluster) {
	for _, c := range all {
		go c.Start(ctx) //nolint:errcheck // it ends when the context ends; reads report what fails
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, c := range all {
		c.GetCache().WaitForCacheSync(soon)
	}
}

// fill lists a kind from the cache of a cluster. If the cache does not get the objects in time, the error is what the API
// server answers. If it answers with objects, there are just many of them.
func fill(ctx context.Context, from cluster.Cluster, list client.ObjectList, options ...client.ListOption) error {
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := from.GetClient().List(soon, list, options...)
	if err == nil || soon.Err() == nil || ctx.Err() != nil {
		return err
	}
	if err := from.GetAPIReader().List(ctx, list, append(options, client.Limit(1))...); err != nil {
		return err
	}
	return from.GetClient().List(ctx, list, options...)
}
