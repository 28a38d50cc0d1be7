// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

const (
	// maxNameLength leaves room for the two random suffixes of six characters each
	// that MachineSet and Machine append, so that Machine names, which must be
	// label values, are not cut (Cluster API: internal/topology/names/names.go).
	maxNameLength = 63 - 2*6
	hashLength    = 8
)

// OfferingOf returns the offering that a generated object was made for.
func OfferingOf(object metav1.Object) catalog.Key {
	labels := object.GetLabels()
	return catalog.Key{
		InstanceType: labels[v1alpha1.InstanceTypeLabel],
		Zone:         labels[v1alpha1.ZoneLabel],
		CapacityType: labels[v1alpha1.CapacityTypeLabel],
	}
}

// machineDeployment returns the MachineDeployment for an offering, whose Machines
// have the given references, to templates of the given specs as far as their names do
// not tell what they are.
func (g *Generator) machineDeployment(offering catalog.Key, machine clusterv1.MachineSpec, specs []any) *clusterv1.MachineDeployment {
	cluster, template := g.cluster, g.template
	spec := template.Spec.Template.Spec
	machine.ClusterName = cluster.Name
	machine.Version = spec.Version
	machine.MinReadySeconds = spec.MinReadySeconds
	machine.ReadinessGates = spec.ReadinessGates
	machine.Deletion = lo.FromPtr(spec.Deletion)
	hash := HashOf(template.Name, offering, template.Spec.Template.Metadata, machine, template.Spec.Kubelet, specs)
	name := nameOf(hash, template.Name, offering.InstanceType, offering.Zone, offering.CapacityType)

	labels := lo.Assign(labelsOf(template.Name, offering), map[string]string{
		clusterv1.ClusterNameLabel: cluster.Name,
		v1alpha1.TemplateHashLabel: hash,
	})
	// Cluster API's webhook would add these itself (core/webhooks/admission/
	// machinedeployment.go); set here, what is created is what is stored.
	selector := map[string]string{
		clusterv1.ClusterNameLabel:           cluster.Name,
		clusterv1.MachineDeploymentNameLabel: name,
	}
	return &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster.Namespace, Labels: labels},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: cluster.Name,
			Selector:    metav1.LabelSelector{MatchLabels: selector},
			// Nothing is ever rolled out. Should anybody change the template of a
			// generated MachineDeployment, OnDelete keeps its Machines where they are.
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
				Type: clusterv1.OnDeleteMachineDeploymentStrategyType,
			}},
			Deletion: clusterv1.MachineDeploymentDeletionSpec{Order: clusterv1.NewestMachineSetDeletionOrder},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{
					Labels:      lo.Assign(template.Spec.Template.Metadata.Labels, labels, selector),
					Annotations: lo.Assign(template.Spec.Template.Metadata.Annotations, map[string]string{v1alpha1.DrainHookAnnotation: ""}),
				},
				Spec: machine,
			},
		},
	}
}

// HashOf returns a hash of everything that shapes a Machine. Values of these
// types have one JSON form: maps are sorted and quantities are canonical.
func HashOf(values ...any) string {
	hash := sha256.New()
	for _, value := range values {
		// Encoding these types cannot fail, and writing to a hash never does.
		lo.Must0(json.NewEncoder(hash).Encode(value))
	}
	return hex.EncodeToString(hash.Sum(nil))[:hashLength]
}

// nameOf returns a name for people to recognise, made unique by the hash.
func nameOf(hash string, parts ...string) string {
	name := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, strings.ToLower(strings.Join(lo.Compact(parts), "-")))
	name = name[:min(len(name), maxNameLength-hashLength-1)]
	return strings.Trim(name, "-") + "-" + hash
}
