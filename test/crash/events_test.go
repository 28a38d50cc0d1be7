// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"slices"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/providerid"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// resources are the scalable resources that a change concerns, as
// internal/controller/enqueue has it.
func (p *process) resources(c *change) []string {
	if c.before != nil && c.after != nil && c.kind != "Cluster" && !enqueue.Changed(c.before, c.after) {
		return nil
	}
	var names []string
	for _, object := range []client.Object{c.before, c.after} {
		if object == nil {
			continue
		}
		switch c.kind {
		case "NodeClaim":
			names = append(names, object.GetAnnotations()[v1alpha1.ScalableResourceAnnotation])
		case "Machine", "MachineSet":
			names = append(names, operator.ResourceOf(object))
		case "MachineDeployment", "MachinePool":
			names = append(names, object.GetName())
		case "Cluster":
			names = append(names, p.everyResource(c)...)
		}
	}
	return names
}

// everyResource returns all scalable resources if the Cluster is created, paused or resumed.
func (p *process) everyResource(c *change) []string {
	before, _ := c.before.(*clusterv1.Cluster)
	after, _ := c.after.(*clusterv1.Cluster)
	if before != nil && after != nil && lo.FromPtr(before.Spec.Paused) == lo.FromPtr(after.Spec.Paused) {
		return nil
	}
	return p.known()
}

// resourcesOrFailed includes the resources of a template whose unavailable offerings change.
func (p *process) resourcesOrFailed(c *change) []string {
	before, _ := c.before.(*v1alpha1.KarpenterMachineTemplate)
	after, _ := c.after.(*v1alpha1.KarpenterMachineTemplate)
	if before != nil && after != nil && !equality.Semantic.DeepEqual(before.Status.UnavailableOfferings, after.Status.UnavailableOfferings) {
		return p.known()
	}
	return p.resources(c)
}

// resourcesOrLost includes the resources of the claims of a Node that was deleted.
func (p *process) resourcesOrLost(c *change) []string {
	node, isNode := c.before.(*corev1.Node)
	if !isNode || c.after != nil {
		return p.resourcesOrFailed(c)
	}
	var names []string
	for _, name := range sortedNames(p.cache.view["NodeClaim"]) {
		if claim := p.cache.view["NodeClaim"][name].(*karpv1.NodeClaim); claim.Status.ProviderID == node.Spec.ProviderID {
			names = append(names, claim.Annotations[v1alpha1.ScalableResourceAnnotation])
		}
	}
	return names
}

// known returns the resources that exist or that a claim names.
func (p *process) known() []string {
	names := slices.Concat(sortedNames(p.cache.view["MachineDeployment"]), sortedNames(p.cache.view["MachinePool"]))
	for _, claim := range sortedNames(p.cache.view["NodeClaim"]) {
		names = append(names, p.cache.view["NodeClaim"][claim].GetAnnotations()[v1alpha1.ScalableResourceAnnotation])
	}
	return names
}

// claims are those that core reconciles after a change.
func (p *process) claims(c *change) []string {
	switch c.kind {
	case "NodeClaim":
		return []string{c.name}
	case "Node":
		var names []string
		for _, node := range []client.Object{c.before, c.after} {
			for _, name := range sortedNames(p.cache.view["NodeClaim"]) {
				claim := p.cache.view["NodeClaim"][name]
				if node != nil && claim.(*karpv1.NodeClaim).Status.ProviderID == node.(*corev1.Node).Spec.ProviderID {
					names = append(names, name)
				}
			}
		}
		return names
	}
	return nil
}

// claimsWithMachine are the claims whose provider ID can change, as internal/controller/providerid has
// it: a claim itself, that of a Machine, and that of a Machine whose ID another claim has had.
func (p *process) claimsWithMachine(c *change) []string {
	switch c.kind {
	case "Machine":
		return p.claimsOfMachine(c)
	case "NodeClaim":
		before, _ := c.before.(*karpv1.NodeClaim)
		after, _ := c.after.(*karpv1.NodeClaim)
		switch {
		case before == nil:
			return []string{c.name}
		case after == nil:
			return p.servedWith(before.Status.ProviderID)
		case before.Status.ProviderID != after.Status.ProviderID:
			return append(p.servedWith(before.Status.ProviderID), c.name)
		case providerid.ClaimChanged(before, after):
			return []string{c.name}
		}
	}
	return nil
}

// claimsOfMachine are the claims that a Machine was and is linked to, if a change can concern their
// provider IDs.
func (p *process) claimsOfMachine(c *change) (names []string) {
	before, _ := c.before.(*clusterv1.Machine)
	after, _ := c.after.(*clusterv1.Machine)
	if before != nil && after != nil && !providerid.MachineChanged(before, after) {
		return nil
	}
	for _, machine := range []*clusterv1.Machine{before, after} {
		if machine != nil {
			names = append(names, lifecycle.ClaimName(machine))
		}
	}
	return names
}

// servedWith returns the claims whose Machine has a provider ID.
func (p *process) servedWith(id string) (names []string) {
	for _, name := range sortedNames(p.cache.view["Machine"]) {
		if machine := p.cache.view["Machine"][name].(*clusterv1.Machine); machine.Spec.ProviderID == id {
			names = append(names, machine.Annotations[v1alpha1.NodeClaimAnnotation])
		}
	}
	return names
}

// nodes are the Nodes that core reconciles after a change.
func (p *process) nodes(c *change) []string {
	if c.kind == "Node" {
		return []string{c.name}
	}
	return nil
}
