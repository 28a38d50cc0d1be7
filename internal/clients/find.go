// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FindCluster returns the Cluster to serve. If a name and a namespace are set, it is that
// Cluster, even if it does not exist yet. Otherwise it is the only Cluster that matches. If
// no Cluster or more than one matches, the error lists the Clusters that exist.
func FindCluster(ctx context.Context, management client.Reader, namespace, name string) (types.NamespacedName, error) {
	if namespace != "" && name != "" {
		return types.NamespacedName{Namespace: namespace, Name: name}, nil
	}
	clusters := &clusterv1.ClusterList{}
	if err := management.List(ctx, clusters, client.InNamespace(namespace)); err != nil {
		return types.NamespacedName{}, fmt.Errorf("listing the Clusters of the management cluster: %w", err)
	}
	visible := lo.Map(clusters.Items, func(c clusterv1.Cluster, _ int) types.NamespacedName { return client.ObjectKeyFromObject(&c) })
	matching := lo.Filter(visible, func(c types.NamespacedName, _ int) bool { return name == "" || c.Name == name })
	if len(matching) == 1 {
		return matching[0], nil
	}
	found := "none"
	if len(visible) > 0 {
		names := lo.Map(visible, func(c types.NamespacedName, _ int) string { return c.String() })
		slices.Sort(names)
		found = strings.Join(names, ", ")
	}
	return types.NamespacedName{}, fmt.Errorf("expected exactly one Cluster%s, found %s: set --cluster-name and --cluster-namespace",
		lo.Ternary(name == "", "", " named "+name), found)
}
