// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// NodeClassKind is the kind of the NodeClasses of karpenter-provider-cluster-api.
const NodeClassKind = "ClusterAPINodeClass"

// Found is what both clusters have.
type Found struct {
	// Cluster is the Cluster that is served.
	Cluster *clusterv1.Cluster
	// Deployments are the MachineDeployments of the Cluster that the operator has not generated.
	Deployments []Deployment
	// MachinePools are the names of those that cluster-autoscaler scales.
	MachinePools []string
	// NodeClasses are the ClusterAPINodeClasses.
	NodeClasses []unstructured.Unstructured
	NodePools   []karpv1.NodePool
}

// Deployment is a MachineDeployment with its infrastructure template, which is nil if it does not exist.
type Deployment struct {
	*clusterv1.MachineDeployment
	Infrastructure *unstructured.Unstructured
}

// Read reads what a plan needs, once.
func Read(ctx context.Context, clusters *clients.Clusters) (*Found, error) {
	found := &Found{Cluster: &clusterv1.Cluster{}}
	management, in := clusters.Management.GetAPIReader(), client.InNamespace(clusters.Cluster.Namespace)
	if err := management.Get(ctx, clusters.Cluster, found.Cluster); err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	deployments, pools := &clusterv1.MachineDeploymentList{}, &clusterv1.MachinePoolList{}
	for _, list := range []client.ObjectList{deployments, pools} {
		if err := management.List(ctx, list, in); err != nil {
			return nil, fmt.Errorf("management cluster: %w", err)
		}
	}
	for i := range deployments.Items {
		deployment := &deployments.Items[i]
		if deployment.Spec.ClusterName != clusters.Cluster.Name || deployment.Labels[v1alpha1.TemplateLabel] != "" {
			continue
		}
		infrastructure, _, err := reference.Existing(ctx, management, deployment.Spec.Template.Spec.InfrastructureRef, deployment.Namespace)
		if err != nil {
			return nil, fmt.Errorf("management cluster: MachineDeployment %s: %w", deployment.Name, err)
		}
		found.Deployments = append(found.Deployments, Deployment{deployment, infrastructure})
	}
	for i := range pools.Items {
		if pools.Items[i].Spec.ClusterName == clusters.Cluster.Name && isSized(pools.Items[i].Annotations) {
			found.MachinePools = append(found.MachinePools, pools.Items[i].Name)
		}
	}
	nodePools := &karpv1.NodePoolList{}
	if err := clusters.Workload.GetAPIReader().List(ctx, nodePools); err != nil {
		return nil, fmt.Errorf("workload cluster: %w", err)
	}
	found.NodePools = nodePools.Items
	classes := &unstructured.UnstructuredList{}
	classes.SetGroupVersionKind(schema.GroupVersionKind{Group: v1alpha1.Group, Version: "v1alpha1", Kind: NodeClassKind + "List"})
	if err := clusters.Workload.GetAPIReader().List(ctx, classes); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("workload cluster: %w", err)
	}
	found.NodeClasses = classes.Items
	return found, nil
}

// isSized reports whether an object has the annotations with which cluster-autoscaler discovers it.
func isSized(annotations map[string]string) bool {
	return lo.HasKey(annotations, clusterv1.AutoscalerMinSizeAnnotation) && lo.HasKey(annotations, clusterv1.AutoscalerMaxSizeAnnotation)
}
