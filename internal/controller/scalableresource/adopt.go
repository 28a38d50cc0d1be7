// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// adopt adopts a MachineDeployment that the discovery of a template has found, when the first claim
// names it. Until then, the MachineDeployment does not change. It returns true if it has adopted
// the MachineDeployment: the event of that triggers the next reconcile.
func (r *Reconciler) adopt(ctx context.Context, name string) (bool, error) {
	management := r.clusters.Management.GetClient()
	resource := &clusterv1.MachineDeployment{}
	key := types.NamespacedName{Namespace: r.clusters.Cluster.Namespace, Name: name}
	if err := management.Get(ctx, key, resource); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("getting MachineDeployment %s: %w", key, err))
	}
	if !r.adoptable(resource) {
		return false, nil
	}
	cluster := &clusterv1.Cluster{}
	if err := management.Get(ctx, r.clusters.Cluster, cluster); err != nil || lo.FromPtr(cluster.Spec.Paused) {
		return false, client.IgnoreNotFound(err)
	}
	claims := &karpv1.NodeClaimList{}
	if err := r.clusters.Workload.GetClient().List(ctx, claims, client.MatchingFields{clients.NodeClaimResourceField: name}); err != nil {
		return false, fmt.Errorf("listing the NodeClaims of MachineDeployment %s: %w", name, err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		template, err := r.clusters.Template(ctx, lo.FromPtr(claim.Spec.NodeClassRef).Name)
		if err != nil {
			return false, err
		}
		offering := catalog.KeyOf(claim)
		offers, err := r.offers(ctx, template, offering, name)
		if err != nil {
			return false, err
		}
		if offers {
			return r.adoptAs(ctx, resource, template.Name, offering)
		}
	}
	return false, nil
}

// adoptable reports whether a MachineDeployment can be adopted now. The template's conditions report why templates may
// not use it.
func (r *Reconciler) adoptable(resource *clusterv1.MachineDeployment) bool {
	switch {
	case resource.Spec.ClusterName != "" && resource.Spec.ClusterName != r.clusters.Cluster.Name:
		return false // a user has edited its label
	case resource.Labels[v1alpha1.TemplateLabel] != "", !resource.DeletionTimestamp.IsZero():
		return false
	case annotations.HasPaused(resource), lo.FromPtr(resource.Spec.Paused):
		return false
	default:
		return r.clusters.Allowed.Adoption(resource) == nil
	}
}

// adoptAs adopts a MachineDeployment for an offering of a template, unless the Cluster is paused
// or being deleted.
func (r *Reconciler) adoptAs(ctx context.Context, resource *clusterv1.MachineDeployment, template string, offering catalog.Key) (bool, error) {
	if inactive, err := r.clusters.Inactive(ctx); err != nil || inactive {
		return false, err
	}
	management, key := r.clusters.Management.GetClient(), client.ObjectKeyFromObject(resource)
	machines := &clusterv1.MachineList{}
	if err := management.List(ctx, machines, client.MatchingFields{clients.ResourceField: resource.Name}); err != nil {
		return false, fmt.Errorf("listing the Machines of MachineDeployment %s: %w", key, err)
	}
	adopted := scalable.Adopt(resource, machines.Items, template, offering)
	if err := precondition.Write(ctx, management, resource, adopted, "adopting"); err != nil {
		return false, err
	}
	log.FromContext(ctx).Info("adopted MachineDeployment", "MachineDeployment", key, "offering", offering.String(), "unmanagedReplicas", lo.FromPtr(resource.Spec.Replicas))
	return true, nil
}

// offers reports whether a template offers an existing MachineDeployment.
func (r *Reconciler) offers(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, key catalog.Key, name string) (bool, error) {
	if template == nil {
		return false, nil
	}
	_, offering, err := r.catalog.Find(ctx, template, key)
	if catalog.IsNotOffered(err) {
		return false, nil
	}
	return err == nil && offering.MachineDeployment == name, err
}

// endAdoption ends the adoption of a MachineDeployment that its template no longer offers, or whose
// template is being deleted, and whose Machines are all unmanaged. It returns true if it has ended
// the adoption.
func (r *Reconciler) endAdoption(ctx context.Context, snap *decided) (bool, error) {
	if len(snap.Claims) > 0 || len(snap.Machines) > len(snap.Plan.Unmanaged) {
		return false, nil
	}
	offers, err := r.offers(ctx, snap.Template, scalable.OfferingOf(snap.Resource), snap.Name)
	if catalog.IsUndiscovered(err) {
		return false, nil
	}
	if err != nil || offers && snap.Template.DeletionTimestamp.IsZero() {
		return false, err
	}
	resource := snap.Resource
	if err := precondition.Write(ctx, r.clusters.Management.GetClient(), resource.API(), scalable.EndAdoption(resource).API(), "ending the adoption of"); err != nil {
		return false, err
	}
	log.FromContext(ctx).Info("ended the adoption of scalable resource", "kind", resource.Kind().Name(), "resource", resource.Key())
	return true, nil
}
