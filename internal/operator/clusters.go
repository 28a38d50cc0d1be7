// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Clusters are the two clusters and the Cluster that is served.
type Clusters struct {
	// Cluster is the served Cluster, in the management cluster.
	Cluster types.NamespacedName
	// Workload has Pods, Nodes, NodePools, NodeClaims and templates.
	Workload cluster.Cluster
	// Management has Cluster API's objects; its cache holds only what belongs to
	// the served Cluster, and the templates of its namespace.
	Management cluster.Cluster
	// Timings are those of the operator; zero for ProductionTimings.
	Timings Timings
}

// newManagement returns the management cluster, whose cache is limited to the
// served Cluster.
func newManagement(ctx context.Context, config *rest.Config, served types.NamespacedName) (cluster.Cluster, error) {
	ofCluster := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{clusterv1.ClusterNameLabel: served.Name})}
	management, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme = scheme.Scheme
		o.Cache = cache.Options{
			DefaultNamespaces: map[string]cache.Config{served.Namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&clusterv1.Cluster{}:           {Field: fields.OneTermEqualSelector("metadata.name", served.Name)},
				&clusterv1.MachineDeployment{}: {Label: ofCluster.Label, Transform: stripMostManagedFields()},
				&clusterv1.MachinePool{}:       ofCluster,
				&clusterv1.MachineSet{}:        ofCluster,
				&clusterv1.Machine{}:           ofCluster,
			},
		}
		// Infrastructure and bootstrap templates are read as unstructured objects.
		o.Client = client.Options{Cache: &client.CacheOptions{Unstructured: true}}
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the management cluster %s: %w", config.Host, err)
	}
	if err := index(ctx, management.GetFieldIndexer(), managementFields...); err != nil {
		return nil, fmt.Errorf("management cluster %s: %w", config.Host, err)
	}
	return management, nil
}
