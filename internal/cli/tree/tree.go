// SPDX-License-Identifier: Apache-2.0

// Package tree shows how objects belong together: NodePool, template, NodeClaim, MachineDeployment or MachinePool, Machine, its
// infrastructure and bootstrap objects, and Node.
package tree

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// Item is one object of a tree.
type Item struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Namespace is empty for objects without one.
	Namespace string    `json:"namespace,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	// State is the state in one or two words.
	State string `json:"state,omitempty"`
	// Offering is the instance type, zone and capacity type.
	Offering string `json:"offering,omitempty"`
	// PricePerHour is that of the object or, for a NodePool and a template, of all NodeClaims below it. It is nil if it is not
	// known.
	PricePerHour *float64 `json:"pricePerHour,omitempty"`
	// Problem is the condition that blocks the object, with its reason and message.
	Problem  string  `json:"problem,omitempty"`
	Children []*Item `json:"children,omitempty"`
}

// Kinds are the kinds of objects that a tree can be of, as users name them.
var Kinds = map[string]string{
	"nodepool": "NodePool", "template": v1alpha1.Kind, "nodeclaim": "NodeClaim", "node": "Node", "machine": "Machine",
}

// Of returns the trees of all NodePools, and of templates with objects that belong to no NodePool.
func Of(ctx context.Context, v *view.View) []*Item {
	b := &builder{ctx: ctx, view: v, shown: map[string]bool{}, machines: v.MachinesOf()}
	b.claimed = lo.CountValuesBy(v.Claims, func(c karpv1.NodeClaim) string { return c.Annotations[v1alpha1.ScalableResourceAnnotation] })
	var roots []*Item
	for i := range v.NodePools {
		roots = append(roots, b.nodePool(&v.NodePools[i]))
	}
	used := lo.SliceToMap(v.NodePools, func(p karpv1.NodePool) (string, bool) { return p.Spec.Template.Spec.NodeClassRef.Name, true })
	for i := range v.Templates {
		template := &v.Templates[i]
		rest := b.rest(template.Name)
		if len(rest) > 0 || !used[template.Name] {
			item := b.template(template)
			item.Children = rest
			item.PricePerHour = sum(rest)
			roots = append(roots, item)
		}
	}
	return roots
}

// Only returns what is left of trees if only one object, all above it, and all below it is shown. It is empty if there is no
// such object.
func Only(items []*Item, kind, name string) []*Item {
	return lo.FilterMap(items, func(item *Item, _ int) (*Item, bool) {
		if item.Kind == kind && item.Name == name {
			return item, true
		}
		left := *item
		left.Children = Only(item.Children, kind, name)
		return &left, len(left.Children) > 0
	})
}

type builder struct {
	ctx  context.Context
	view *view.View
	// shown has the names of the Machines that were shown with their NodeClaims.
	shown map[string]bool
	// machines are those of each scalable resource, and claimed how many NodeClaims name it.
	machines map[string][]*clusterv1.Machine
	claimed  map[string]int
}

func (b *builder) nodePool(pool *karpv1.NodePool) *Item {
	state := view.OfNodePool(pool)
	item := &Item{Kind: "NodePool", Name: pool.Name, Created: pool.CreationTimestamp.Time, State: state.Word, Problem: state.Problem}
	below := &Item{Kind: v1alpha1.Kind, Name: pool.Spec.Template.Spec.NodeClassRef.Name, State: "NotFound", Problem: "the template does not exist"}
	if template := b.view.Template(below.Name); template != nil {
		below = b.template(template)
	}
	below.Children = lo.Map(b.view.ClaimsOf(pool.Name), func(claim *karpv1.NodeClaim, _ int) *Item { return b.claim(claim) })
	item.Children = []*Item{below}
	below.PricePerHour = sum(below.Children)
	item.PricePerHour = below.PricePerHour
	return item
}

func (b *builder) template(template *v1alpha1.KarpenterMachineTemplate) *Item {
	state := view.OfTemplate(template)
	return &Item{Kind: v1alpha1.Kind, Name: template.Name, Created: template.CreationTimestamp.Time, State: state.Word, Problem: state.Problem}
}

func (b *builder) claim(claim *karpv1.NodeClaim) *Item {
	state := view.OfClaim(claim)
	item := &Item{Kind: "NodeClaim", Name: claim.Name, Created: claim.CreationTimestamp.Time, State: state.Word, Problem: state.Problem}
	if catalog.Launched(claim) {
		item.Offering = catalog.KeyOf(claim).String()
		if price, known := b.view.Price(b.ctx, claim); known {
			item.PricePerHour = &price
		}
	}
	machine := b.view.MachineOf(claim)
	node := b.view.NodeOf(claim, machine)
	below := item
	if name := claim.Annotations[v1alpha1.ScalableResourceAnnotation]; name != "" {
		resource := b.resource(name)
		item.Children = []*Item{resource}
		below = resource
	}
	switch {
	case machine != nil:
		below.Children = append(below.Children, b.machine(machine, node))
	case node != nil:
		below.Children = append(below.Children, ofNode(node))
	}
	return item
}

// resource returns a MachineDeployment or MachinePool without its Machines.
func (b *builder) resource(name string) *Item {
	resource := b.view.Resource(name)
	if resource == nil {
		return &Item{Kind: string(v1alpha1.ScalableResourceKindMachineDeployment), Name: name, State: "NotFound", Problem: "it does not exist"}
	}
	state := view.OfResource(resource)
	return &Item{
		Kind: string(resource.Kind().Name()), Name: name, Namespace: resource.GetNamespace(), Created: resource.GetCreationTimestamp().Time,
		State: state.Word, Problem: state.Problem, Offering: scalable.OfferingOf(resource).String(),
	}
}

func (b *builder) machine(machine *clusterv1.Machine, node *corev1.Node) *Item {
	b.shown[machine.Name] = true
	state := view.OfMachine(machine)
	item := &Item{Kind: "Machine", Name: machine.Name, Namespace: machine.Namespace, Created: machine.CreationTimestamp.Time, State: state.Word, Problem: state.Problem}
	for _, ref := range []clusterv1.ContractVersionedObjectReference{machine.Spec.InfrastructureRef, machine.Spec.Bootstrap.ConfigRef} {
		if ref.IsDefined() {
			item.Children = append(item.Children, b.provider(machine.Namespace, ref))
		}
	}
	if node != nil {
		item.Children = append(item.Children, ofNode(node))
	}
	return item
}

// provider returns an infrastructure or bootstrap object.
func (b *builder) provider(namespace string, ref clusterv1.ContractVersionedObjectReference) *Item {
	item := &Item{Kind: ref.Kind, Name: ref.Name, Namespace: namespace}
	object, err := b.view.Object(b.ctx, ref)
	if err != nil {
		item.State, item.Problem = "Unknown", err.Error()
		return item
	}
	state := view.OfProvider(object)
	item.Created, item.State, item.Problem = object.GetCreationTimestamp().Time, state.Word, state.Problem
	return item
}

func ofNode(node *corev1.Node) *Item {
	state := view.OfNode(node)
	return &Item{Kind: "Node", Name: node.Name, Created: node.CreationTimestamp.Time, State: state.Word, Problem: state.Problem}
}

// rest returns what belongs to a template and to no NodePool: NodeClaims without one, and resources with Machines that serve no
// NodeClaim, or without Machines.
func (b *builder) rest(template string) []*Item {
	var items []*Item
	for _, claim := range b.view.ClaimsOf("") {
		if claim.Spec.NodeClassRef.Name == template {
			items = append(items, b.claim(claim))
		}
	}
	for _, resource := range b.view.Resources {
		if resource.GetLabels()[v1alpha1.TemplateLabel] != template {
			continue
		}
		var machines []*Item
		served := false
		for _, machine := range b.machines[resource.GetName()] {
			if b.shown[machine.Name] {
				served = true
			} else {
				machines = append(machines, b.machine(machine, b.view.NodeOf(nil, machine)))
			}
		}
		if len(machines) > 0 || !served && b.claimed[resource.GetName()] == 0 {
			item := b.resource(resource.GetName())
			item.Children = machines
			items = append(items, item)
		}
	}
	return items
}

// sum returns the price of all items; nil if the price of none is known.
func sum(items []*Item) *float64 {
	known := lo.FilterMap(items, func(item *Item, _ int) (float64, bool) {
		return lo.FromPtr(item.PricePerHour), item.PricePerHour != nil
	})
	if len(known) == 0 {
		return nil
	}
	return lo.ToPtr(view.Sum(known...))
}

// String returns the kind and name.
func (i *Item) String() string { return fmt.Sprintf("%s/%s", i.Kind, i.Name) }
