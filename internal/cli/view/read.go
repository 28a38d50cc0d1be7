// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// Read reads both clusters. The error names each kind that cannot be read.
func Read(ctx context.Context, clusters *clients.Clusters, now time.Time) (*View, error) {
	v, unread := ReadSome(ctx, clusters, now)
	if len(unread) > 0 {
		return nil, errors.Join(unread...)
	}
	return v, nil
}

// ReadSome reads what can be read of both clusters, and returns an error for each kind that cannot.
func ReadSome(ctx context.Context, clusters *clients.Clusters, now time.Time) (*View, []error) {
	v := &View{Now: now, clusters: clusters, catalog: catalog.New(clusters), types: map[string]map[catalog.Key]catalog.Offering{}, plans: map[string]*Plan{}}
	var (
		catalogs  v1alpha1.InstanceTypeCatalogList
		templates v1alpha1.KarpenterMachineTemplateList
		pools     karpv1.NodePoolList
		claims    karpv1.NodeClaimList
		nodes     corev1.NodeList
		served    clusterv1.ClusterList
		sets      clusterv1.MachineSetList
		machines  clusterv1.MachineList
		deployed  clusterv1.MachineDeploymentList
		pooled    clusterv1.MachinePoolList
	)
	var errs []error
	for _, list := range []client.ObjectList{&catalogs, &templates, &pools, &claims, &nodes} {
		if err := fill(ctx, clusters.Workload, list); err != nil {
			errs = append(errs, fmt.Errorf("workload cluster: %w", err))
		}
	}
	readable := true
	for _, list := range []client.ObjectList{&served, &deployed, &pooled, &sets, &machines} {
		if err := fill(ctx, clusters.Management, list, client.InNamespace(clusters.Cluster.Namespace)); err != nil {
			errs, readable = append(errs, fmt.Errorf("management cluster: %w", err)), false
		}
	}
	if cluster, found := lo.Find(served.Items, func(c clusterv1.Cluster) bool { return c.Name == clusters.Cluster.Name }); found {
		v.Cluster = &cluster
	}
	v.NodePools = byAge(lo.Filter(pools.Items, func(p karpv1.NodePool, _ int) bool { return clients.IsTemplate(p.Spec.Template.Spec.NodeClassRef) }))
	v.Claims = byAge(lo.Filter(claims.Items, func(c karpv1.NodeClaim, _ int) bool { return clients.IsTemplate(c.Spec.NodeClassRef) }))
	v.Templates, v.Catalogs, v.Nodes = byAge(templates.Items), byAge(catalogs.Items), byAge(nodes.Items)
	v.Machines = byAge(lo.Filter(machines.Items, func(m clusterv1.Machine, _ int) bool { return m.Spec.ClusterName == clusters.Cluster.Name }))
	if readable { // otherwise, it could wait for kinds that the cache never gets
		resources, err := scalable.List(ctx, clusters)
		if err != nil {
			errs = append(errs, fmt.Errorf("management cluster: %w", err))
		}
		v.Resources = lo.Filter(resources, func(r *scalable.Resource, _ int) bool { return r.GetLabels()[v1alpha1.TemplateLabel] != "" })
		slices.SortFunc(v.Resources, func(a, b *scalable.Resource) int { return older(a, b) })
	}
	v.index()
	return v, errs
}

func (v *View) index() {
	v.claims, v.nodes, v.machines = byName(v.Claims), byName(v.Nodes), byName(v.Machines)
	v.owners = make(map[types.UID]*karpv1.NodeClaim, len(v.Claims))
	for i := range v.Claims {
		v.owners[v.Claims[i].UID] = &v.Claims[i]
	}
	v.linked = map[types.UID][]*clusterv1.Machine{}
	for i := range v.Machines {
		if claim := lifecycle.ClaimUID(&v.Machines[i]); claim != "" {
			v.linked[claim] = append(v.linked[claim], &v.Machines[i])
		}
	}
}

func byName[T any, O interface {
	*T
	metav1.Object
}](objects []T) map[string]O {
	named := make(map[string]O, len(objects))
	for i := range objects {
		named[O(&objects[i]).GetName()] = &objects[i]
	}
	return named
}

// byAge returns objects sorted by age, and then by name.
func byAge[T any, O interface {
	*T
	metav1.Object
}](objects []T) []T {
	slices.SortFunc(objects, func(a, b T) int { return older(O(&a), O(&b)) })
	return objects
}

func older(a, b metav1.Object) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
}
