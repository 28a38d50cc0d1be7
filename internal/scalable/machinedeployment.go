// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

const (
	// maxNameLength leaves room for the two random suffixes of six characters each
	// that MachineSet and Machine append, so that Machine names, which must be
	// label values, are not cut (Cluster API: internal/topology/names/names.go).
	maxNameLength = 63 - 2*6
	hashLength    = 8
)

// Offering is what one scalable resource makes.
type Offering struct {
	InstanceType string
	// Zone is empty for infrastructure without zones.
	Zone         string
	CapacityType string
}

// String returns the offering for messages, as m5.large/us-east-1a/spot.
func (o Offering) String() string {
	return strings.Join(lo.Compact([]string{o.InstanceType, o.Zone, o.CapacityType}), "/")
}

// OfferingOf returns the offering that a generated object was made for.
func OfferingOf(object metav1.Object) Offering {
	labels := object.GetLabels()
	return Offering{
		InstanceType: labels[v1alpha1.InstanceTypeLabel],
		Zone:         labels[v1alpha1.ZoneLabel],
		CapacityType: labels[v1alpha1.CapacityTypeLabel],
	}
}

// MachineDeployment returns the MachineDeployment for an offering of a template
// in the given Cluster, without replicas. Its name and template hash depend on
// nothing but what shapes its Machines: a price, for one, does not.
//
// It fails if the template has no such offering, or no infrastructure for it.
func MachineDeployment(cluster types.NamespacedName, template *v1alpha1.KarpenterMachineTemplate, offering Offering) (*clusterv1.MachineDeployment, error) {
	instanceType, err := find(template, offering)
	if err != nil {
		return nil, err
	}
	infrastructure := lo.CoalesceOrEmpty(instanceType.InfrastructureRef, template.Spec.Template.Spec.InfrastructureRef)
	if infrastructure == nil {
		return nil, fmt.Errorf("KarpenterMachineTemplate %s: instance type %s has no infrastructureRef and template.spec has none either", template.Name, instanceType.Name)
	}

	spec := template.Spec.Template.Spec
	machine := clusterv1.MachineSpec{
		ClusterName:       cluster.Name,
		Version:           spec.Version,
		Bootstrap:         *spec.Bootstrap.DeepCopy(),
		InfrastructureRef: *infrastructure,
		FailureDomain:     offering.Zone,
		MinReadySeconds:   spec.MinReadySeconds,
		ReadinessGates:    spec.ReadinessGates,
		Deletion:          lo.FromPtr(spec.Deletion),
	}
	hash := hashOf(template.Name, offering, template.Spec.Template.Metadata, machine, template.Spec.Kubelet)
	name := nameOf(template.Name, offering, hash)

	labels := map[string]string{
		clusterv1.ClusterNameLabel: cluster.Name,
		v1alpha1.TemplateLabel:     template.Name,
		v1alpha1.InstanceTypeLabel: offering.InstanceType,
		v1alpha1.CapacityTypeLabel: offering.CapacityType,
		v1alpha1.TemplateHashLabel: hash,
	}
	if offering.Zone != "" {
		labels[v1alpha1.ZoneLabel] = offering.Zone
	}
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
	}, nil
}

// find returns the instance type of an offering.
func find(template *v1alpha1.KarpenterMachineTemplate, offering Offering) (*v1alpha1.InstanceType, error) {
	for i := range template.Spec.InstanceTypes {
		instanceType := &template.Spec.InstanceTypes[i]
		if instanceType.Name != offering.InstanceType {
			continue
		}
		for _, o := range instanceType.Offerings {
			if o.Zone == offering.Zone && string(o.CapacityType) == offering.CapacityType {
				return instanceType, nil
			}
		}
	}
	return nil, fmt.Errorf("KarpenterMachineTemplate %s has no offering %s", template.Name, offering)
}

// hashOf returns a hash of everything that shapes a Machine. Values of these
// types have one JSON form: maps are sorted and quantities are canonical.
func hashOf(values ...any) string {
	hash := sha256.New()
	for _, value := range values {
		// Encoding these types cannot fail, and writing to a hash never does.
		lo.Must0(json.NewEncoder(hash).Encode(value))
	}
	return hex.EncodeToString(hash.Sum(nil))[:hashLength]
}

// nameOf returns the name for people to recognise, made unique by the hash.
func nameOf(template string, offering Offering, hash string) string {
	name := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, strings.ToLower(strings.Join(lo.Compact([]string{template, offering.InstanceType, offering.Zone, offering.CapacityType}), "-")))
	name = name[:min(len(name), maxNameLength-hashLength-1)]
	return strings.Trim(name, "-") + "-" + hash
}
