// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
)

const hashLength = 16

// notTaken are the domains of the labels and annotations of Machines that are not taken. The topology
// controller and MachineHealthChecks select Machines by those of Cluster API. The others are set by
// Karpenter and this operator.
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
	return from.MachineDeploymentTopology == entryOf(deployment)
}

// entryOf returns the entry of a topology that Cluster API created a MachineDeployment from; empty if it
// is not part of a topology.
func entryOf(deployment *clusterv1.MachineDeployment) string {
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

// Observe returns what a template takes from its pattern.
func Observe(deployment *clusterv1.MachineDeployment) *v1alpha1.ObservedMachineTemplate {
	machine := deployment.Spec.Template.DeepCopy()
	selects := func(key string, value string) bool { return deployment.Spec.Selector.MatchLabels[key] == value }
	observed := &v1alpha1.ObservedMachineTemplate{
		MachineDeployment: deployment.Name, MachineDeploymentTopology: entryOf(deployment),
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
	observed.Hash = hash.Of(observed.Metadata, observed.Spec)[:hashLength]
	return observed
}

// taken returns the labels or annotations that are taken; nil if there are none.
func taken(all map[string]string) map[string]string {
	some := lo.OmitBy(all, func(key, _ string) bool {
		domain, _, prefixed := strings.Cut(key, "/")
		return prefixed && slices.Contains(notTaken, domain)
	})
	return lo.Ternary(len(some) == 0, nil, some)
}

// Pending reports whether a template names a pattern that was never observed. Nothing can be
// generated from it.
func Pending(template *v1alpha1.KarpenterMachineTemplate) bool {
	return template.Spec.Template.From != nil && template.Status.From == nil
}

// Resolve sets the fields that a template does not set itself to those of its pattern. The template
// must not be shared with a cache.
func Resolve(template *v1alpha1.KarpenterMachineTemplate) {
	if template.Spec.Template.From == nil || template.Status.From == nil {
		return
	}
	machine, from := &template.Spec.Template, template.Status.From.DeepCopy()
	machine.Metadata.Labels = merged(from.Metadata.Labels, machine.Metadata.Labels)
	machine.Metadata.Annotations = merged(from.Metadata.Annotations, machine.Metadata.Annotations)
	if own := machine.Spec.Bootstrap; !own.ConfigRef.IsDefined() && own.DataSecretName == nil {
		machine.Spec.Bootstrap = from.Spec.Bootstrap
	}
	machine.Spec.InfrastructureRef = lo.CoalesceOrEmpty(machine.Spec.InfrastructureRef, from.Spec.InfrastructureRef)
	machine.Spec.Version = lo.CoalesceOrEmpty(machine.Spec.Version, from.Spec.Version)
	machine.Spec.MinReadySeconds = lo.CoalesceOrEmpty(machine.Spec.MinReadySeconds, from.Spec.MinReadySeconds)
	machine.Spec.Deletion = lo.CoalesceOrEmpty(machine.Spec.Deletion, from.Spec.Deletion)
	if len(machine.Spec.ReadinessGates) == 0 {
		machine.Spec.ReadinessGates = from.Spec.ReadinessGates
	}
}

// merged returns both maps, of which the second takes precedence; nil if there is nothing in them.
func merged(from, own map[string]string) map[string]string {
	if len(from) == 0 {
		return own
	}
	all := maps.Clone(from)
	maps.Copy(all, own)
	return all
}

// VersionOf returns the pattern that a resolved template has its Kubernetes version from; nil if it is
// not from a pattern.
func VersionOf(template *v1alpha1.KarpenterMachineTemplate) *v1alpha1.ObservedMachineTemplate {
	from := template.Status.From
	if template.Spec.Template.From == nil || from == nil || from.Spec.Version == "" || from.Spec.Version != template.Spec.Template.Spec.Version {
		return nil
	}
	return from
}
