// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
)

// NodeTemplateLabel is the label of Nodes with the name of their KarpenterMachineTemplate, which Karpenter sets.
var NodeTemplateLabel = karpv1.NodeClassLabelKey(schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.Kind})

// IsTemplate reports whether a reference to a NodeClass names a KarpenterMachineTemplate.
func IsTemplate(ref *karpv1.NodeClassReference) bool {
	return ref != nil && ref.Group == v1alpha1.Group && ref.Kind == v1alpha1.Kind
}

// Template returns the KarpenterMachineTemplate with a name from the cache of the workload
// cluster, with what it takes from the MachineDeployment that it follows (see package
// pattern); nil if it does not exist.
func (c *Clusters) Template(ctx context.Context, name string) (*v1alpha1.KarpenterMachineTemplate, error) {
	template, err := c.stored(ctx, name)
	if err != nil || template == nil {
		return nil, err
	}
	taken, err := c.Taken(ctx, template)
	if err != nil {
		return nil, err
	}
	pattern.Resolve(template, taken)
	return template, nil
}

// SharedTemplate returns the same as Template, without a copy for each call: no caller may modify it. It is for
// what Karpenter calls very often, and for reconciles of resources and NodeClaims.
func (c *Clusters) SharedTemplate(ctx context.Context, name string) (*v1alpha1.KarpenterMachineTemplate, error) {
	stored, err := c.stored(ctx, name, client.UnsafeDisableDeepCopy)
	if err != nil || stored == nil {
		return nil, err
	}
	taken, err := c.Taken(ctx, stored)
	if err != nil {
		return nil, err
	}
	if last, found := c.resolved.Load(name); found {
		if known := last.(resolved); known.template.UID == stored.UID && known.template.ResourceVersion == stored.ResourceVersion && known.taken == taken {
			return known.template, nil
		}
	}
	template := stored.DeepCopy()
	pattern.Resolve(template, taken)
	template.StatusConditions() // adds the conditions that are not set yet, which would modify it later
	c.resolved.Store(name, resolved{template, taken})
	return template, nil
}

// resolved is a template with what it was resolved with.
type resolved struct {
	template *v1alpha1.KarpenterMachineTemplate
	taken    *pattern.Taken
}

// stored returns a template as the cache has it; nil if it does not exist.
func (c *Clusters) stored(ctx context.Context, name string, options ...client.GetOption) (*v1alpha1.KarpenterMachineTemplate, error) {
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := c.Workload.GetClient().Get(ctx, types.NamespacedName{Name: name}, template, options...); err != nil {
		if apierrors.IsNotFound(err) {
			c.resolved.Delete(name)
			c.taken.Delete(name)
			return nil, nil
		}
		return nil, fmt.Errorf("getting KarpenterMachineTemplate %s: %w", name, err)
	}
	return template, nil
}

// Pattern returns the MachineDeployment of the served Cluster that a template names in spec.template.from, from the
// cache; nil if there is none. It is shared with the cache and must not be modified.
func (c *Clusters) Pattern(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (*clusterv1.MachineDeployment, error) {
	from, management := template.Spec.Template.From, c.Management.GetClient()
	if from.MachineDeployment != "" {
		key, deployment := types.NamespacedName{Namespace: c.Cluster.Namespace, Name: from.MachineDeployment}, &clusterv1.MachineDeployment{}
		if err := management.Get(ctx, key, deployment, client.UnsafeDisableDeepCopy); err != nil {
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			return nil, fmt.Errorf("getting MachineDeployment %s: %w", key, err)
		}
		return deployment, nil
	}
	list := &clusterv1.MachineDeploymentList{}
	if err := management.List(ctx, list, client.InNamespace(c.Cluster.Namespace), client.MatchingFields{TopologyEntryField: from.MachineDeploymentTopology}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the MachineDeployments of Cluster %s: %w", c.Cluster, err)
	}
	return pattern.Find(template, list.Items), nil
}

// Taken returns what a template takes from the MachineDeployment that it follows; nil if it follows none, or that
// cannot be used. It returns the same value until that changes.
func (c *Clusters) Taken(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (*pattern.Taken, error) {
	if template.Spec.Template.From == nil {
		return nil, nil
	}
	found, err := c.Pattern(ctx, template)
	if err != nil || found == nil || pattern.Problem(found) != "" {
		return nil, err
	}
	now := taken{uid: found.UID, resourceVersion: found.ResourceVersion}
	last, _ := c.taken.Load(template.Name)
	known, _ := last.(taken)
	if known.Taken != nil && known.uid == now.uid && known.resourceVersion == now.resourceVersion && now.resourceVersion != "" {
		return known.Taken, nil
	}
	if now.Taken = pattern.Observe(found); known.Taken != nil && known.Hash == now.Hash {
		now.Taken = known.Taken // its replicas or its status have changed
	}
	c.taken.Store(template.Name, now)
	return now.Taken, nil
}

// taken is what was taken from one version of a MachineDeployment.
type taken struct {
	*pattern.Taken
	uid             types.UID
	resourceVersion string
}
