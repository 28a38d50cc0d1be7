// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"cmp"
	"slices"
	"strings"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
)

// notTaken are the domains of the labels and annotations of Machines that are not taken. The topology
// controller and MachineHealthChecks select Machines by those of Cluster API. The others are set by
// Karpenter and this operator. OtherMemberLabel is not taken either.
var notTaken = []string{"cluster.x-k8s.io", "topology.cluster.x-k8s.io", "karpenter.sh", v1alpha1.Group}

// Named reports whether a template names a MachineDeployment as its pattern.
func Named(template *v1alpha1.KarpenterMachineTemplate, deployment *clusterv1.MachineDeployment) bool {
	from := template.Spec.Template.From
	if from == nil {
		return false
	}
	if from.MachineDeployment != "" {
		return from.MachineDeployment == deployment.Name
	}
	return from.MachineDeploymentTopology == Entry(deployment)
}

// Entry returns the entry of a topology that Cluster API created a MachineDeployment from; empty if it
// is not part of a topology.
func Entry(deployment *clusterv1.MachineDeployment) string {
	if _, owned := deployment.Labels[clusterv1.ClusterTopologyOwnedLabel]; !owned {
		return ""
	}
	return deployment.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
}

// Find returns the pattern of a template among the MachineDeployments of the served Cluster; nil if
// none is named. If several are, it returns one that is not being deleted.
func Find(template *v1alpha1.KarpenterMachineTemplate, deployments []clusterv1.MachineDeployment) *clusterv1.MachineDeployment {
	named := lo.FilterMap(deployments, func(_ clusterv1.MachineDeployment, i int) (*clusterv1.MachineDeployment, bool) {
		return &deployments[i], Named(template, &deployments[i])
	})
	if len(named) == 0 {
		return nil
	}
	deleting := func(d *clusterv1.MachineDeployment) int { return lo.Ternary(d.DeletionTimestamp.IsZero(), 0, 1) }
	return slices.MinFunc(named, func(a, b *clusterv1.MachineDeployment) int {
		return cmp.Or(cmp.Compare(deleting(a), deleting(b)), cmp.Compare(a.Name, b.Name))
	})
}

// Problem returns why a MachineDeployment cannot be a pattern, and what to do; empty if it can.
func Problem(deployment *clusterv1.MachineDeployment) string {
	_, adopted := deployment.Annotations[v1alpha1.AdoptedAnnotation]
	switch template := deployment.Labels[v1alpha1.TemplateLabel]; {
	case template != "" && !adopted:
		return "was generated from KarpenterMachineTemplate " + template + ": name one that you or a topology created"
	case !deployment.DeletionTimestamp.IsZero():
		return "is being deleted: name another one, or remove from"
	}
	return ""
}

// Taken is what a template takes from its pattern.
type Taken struct {
	// ObservedMachineTemplate identifies it in the status of the template.
	v1alpha1.ObservedMachineTemplate
	// Entry is the entry of the Cluster's topology that Cluster API created the MachineDeployment from; empty
	// if it is not part of a topology.
	Entry string
	// Metadata has the labels and annotations that are taken, and Spec the settings of Machines.
	Metadata clusterv1.ObjectMeta
	Spec     v1alpha1.MachineTemplateSpec
}

// Observe returns what a template takes from its pattern.
func Observe(deployment *clusterv1.MachineDeployment) *Taken {
	machine := deployment.Spec.Template.DeepCopy()
	selects := func(key string, value string) bool { return deployment.Spec.Selector.MatchLabels[key] == value }
	observed := &Taken{
		Entry: Entry(deployment),
		Metadata: clusterv1.ObjectMeta{
			Labels:      taken(lo.OmitBy(machine.Labels, selects)),
			Annotations: taken(machine.Annotations),
		},
		Spec: v1alpha1.MachineTemplateSpec{
			Version:           machine.Spec.Version,
			Bootstrap:         machine.Spec.Bootstrap,
			InfrastructureRef: &machine.Spec.InfrastructureRef,
			MinReadySeconds:   machine.Spec.MinReadySeconds,
			ReadinessGates:    machine.Spec.ReadinessGates,
		},
	}
	if machine.Spec.Deletion != (clusterv1.MachineDeletionSpec{}) {
		observed.Spec.Deletion = &machine.Spec.Deletion
	}
	observed.MachineDeployment = deployment.Name
	observed.Hash = hash.Of(hash.From, observed.MachineDeployment, observed.Entry, observed.Metadata, observed.Spec)
	return observed
}

// taken returns the labels or annotations that are taken; nil if there are none.
func taken(all map[string]string) map[string]string {
	some := lo.OmitBy(all, func(key, _ string) bool {
		domain, _, prefixed := strings.Cut(key, "/")
		return prefixed && slices.Contains(notTaken, domain) || key == v1alpha1.OtherMemberLabel
	})
	return lo.Ternary(len(some) == 0, nil, some)
}

// Pending reports whether a resolved template names a pattern that cannot be used, or that was not examined
// with its present content. Nothing can be generated from such a template, and nothing drifts.
func Pending(template *v1alpha1.KarpenterMachineTemplate) bool {
	return template.Spec.Template.From != nil && template.Status.From == nil
}

// Resolve sets the fields that a template does not set itself to those of its pattern; taken is nil if that
// cannot be used. If the status does not name what is taken, the operator has not examined it yet: the template
// then becomes Pending. The template must not be shared with a cache, and its status must not be written.
func Resolve(template *v1alpha1.KarpenterMachineTemplate, taken *Taken) {
	if template.Spec.Template.From == nil {
		return
	}
	if taken == nil || template.FromHash() != taken.Hash {
		template.Status.From = nil
		return
	}
	machine, from := &template.Spec.Template, taken.Spec.DeepCopy()
	machine.Metadata.Labels = merged(taken.Metadata.Labels, machine.Metadata.Labels)
	machine.Metadata.Annotations = merged(taken.Metadata.Annotations, machine.Metadata.Annotations)
	if own := machine.Spec.Bootstrap; !own.ConfigRef.IsDefined() && own.DataSecretName == nil {
		machine.Spec.Bootstrap = from.Bootstrap
	}
	machine.Spec.InfrastructureRef = lo.CoalesceOrEmpty(machine.Spec.InfrastructureRef, from.InfrastructureRef)
	machine.Spec.Version = lo.CoalesceOrEmpty(machine.Spec.Version, from.Version)
	machine.Spec.MinReadySeconds = lo.CoalesceOrEmpty(machine.Spec.MinReadySeconds, from.MinReadySeconds)
	machine.Spec.Deletion = lo.CoalesceOrEmpty(machine.Spec.Deletion, from.Deletion)
	if len(machine.Spec.ReadinessGates) == 0 {
		machine.Spec.ReadinessGates = from.ReadinessGates
	}
}

// merged returns both maps, of which the second takes precedence; nil if there is nothing in them.
func merged[V ~string](from map[string]string, own map[string]V) map[string]V {
	if len(from) == 0 {
		return own
	}
	return lo.Assign(lo.MapValues(from, func(value, _ string) V { return V(value) }), own)
}

// Changed passes updates of a MachineDeployment that can change what templates take from it. It
// drops those of replicas and of the status, which are frequent.
func Changed() predicate.Predicate {
	state := func(deployment *clusterv1.MachineDeployment) [2]string {
		return [2]string{Observe(deployment).Hash, Problem(deployment)}
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isDeployment := e.ObjectOld.(*clusterv1.MachineDeployment)
		after, isStill := e.ObjectNew.(*clusterv1.MachineDeployment)
		return isDeployment && isStill && state(before) != state(after)
	}}
}
