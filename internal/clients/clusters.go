// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	_ "sigs.k8s.io/karpenter/pkg/apis/v1" // adds its types to the scheme

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

// Clusters has the clients of both clusters, and the served Cluster.
type Clusters struct {
	// Cluster is the served Cluster, in the management cluster.
	Cluster types.NamespacedName
	// Workload has Pods, Nodes, NodePools, NodeClaims and templates.
	Workload cluster.Cluster
	// Management has Cluster API's objects. Its cache has only objects of the served
	// Cluster, and the objects of providers in its namespace that belong to no Cluster.
	Management cluster.Cluster
	// Allowed is what templates may refer to in the management cluster; zero for the default.
	Allowed tenancy.Rules
	// ToWorkload and ToManagement are the connections to these clusters; nil if they never fail.
	ToWorkload, ToManagement *connection.Connection
	// Timings are the timings of the operator; zero for ProductionTimings.
	Timings Timings

	// resolved has the templates of SharedTemplate, and taken what templates take from MachineDeployments, by the
	// name of the template.
	resolved, taken sync.Map
}

// Guard returns an error while one of the clusters cannot be reached, or a cache is not filled or known
// to be behind. Then what a cache lacks may exist (docs/design/outages.md).
func (c *Clusters) Guard(context.Context) error {
	return errors.Join(c.ToWorkload.Err(), c.ToManagement.Err())
}

// Outage returns an error during an outage, which is an interruption that is not brief; nil otherwise. It is
// what conditions report.
func (c *Clusters) Outage(ctx context.Context) error {
	if c.Up() > 0 {
		return nil
	}
	return c.Guard(ctx)
}

// Up returns the time since the last outage of one of the clusters; zero during an outage. Timers of
// launches do not run while nothing can be launched.
func (c *Clusters) Up() time.Duration {
	return min(c.ToWorkload.Up(), c.ToManagement.Up())
}

// SettlesIn returns for how long a controller of the management cluster may still have caches that recover
// at different times; zero or less if none has.
func (c *Clusters) SettlesIn() time.Duration {
	timings := cmp.Or(c.Timings, ProductionTimings())
	return c.ToManagement.SettlesIn(timings.Recovery, timings.RecoveryLimit)
}

// NewManagement returns the management cluster with a cache that has no objects of other Clusters.
func NewManagement(ctx context.Context, config *rest.Config, served types.NamespacedName, allowed tenancy.Rules) (cluster.Cluster, error) {
	management, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme = scheme.Scheme
		o.NewCache = newManagementCache(served, allowed)
		// Infrastructure and bootstrap templates are read as unstructured objects.
		o.Client = client.Options{Cache: &client.CacheOptions{Unstructured: true}}
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the management cluster %s: %w", Server(config), err)
	}
	if err := index(ctx, management.GetFieldIndexer(), managementFields...); err != nil {
		return nil, fmt.Errorf("management cluster %s: %w", Server(config), err)
	}
	return management, nil
}

// SecretMetadata returns an object with which the metadata of Secrets is read, and not their data.
func SecretMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
}

// Live returns the served Cluster as the API server has it; nil if it does not exist.
func (c *Clusters) Live(ctx context.Context) (*clusterv1.Cluster, error) {
	return c.served(ctx, c.Management.GetAPIReader())
}

// Cached returns the served Cluster as the cache has it; nil if it does not have it.
func (c *Clusters) Cached(ctx context.Context) (*clusterv1.Cluster, error) {
	return c.served(ctx, c.Management.GetClient())
}

func (c *Clusters) served(ctx context.Context, management client.Reader) (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{}
	if err := management.Get(ctx, c.Cluster, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("getting Cluster %s: %w", c.Cluster, err)
	}
	return cluster, nil
}

// Inactive reports whether the served Cluster is paused, is being deleted or does not exist. It
// reads from the API server: Machines that are requested because a cache lags behind would be
// created while Cluster API deletes all others, or while clusterctl moves the Cluster.
func (c *Clusters) Inactive(ctx context.Context) (bool, error) {
	cluster, err := c.Live(ctx)
	if err != nil || cluster == nil {
		return err == nil, err
	}
	return lo.FromPtr(cluster.Spec.Paused) || !cluster.DeletionTimestamp.IsZero(), nil
}

// FailureDomains returns the names of the failure domains that a Cluster reports, sorted.
func FailureDomains(cluster *clusterv1.Cluster) []string {
	names := lo.Map(cluster.Status.FailureDomains, func(domain clusterv1.FailureDomain, _ int) string { return domain.Name })
	slices.Sort(names)
	return names
}

// Karpenter core uses client-go's scheme, so the types of this operator are added to it.
func init() {
	lo.Must0(v1alpha1.AddToScheme(scheme.Scheme))
	lo.Must0(clusterv1.AddToScheme(scheme.Scheme))
}
