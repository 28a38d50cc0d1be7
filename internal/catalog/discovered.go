// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capiannotations "sigs.k8s.io/cluster-api/util/annotations"
	capilabels "sigs.k8s.io/cluster-api/util/labels"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
)

// fromInfrastructure returns the instance type that an infrastructure template describes.
// Each annotation takes precedence over the corresponding field of its status.
func fromInfrastructure(object *unstructured.Unstructured, prices prices) (Type, error) {
	given := annotations(object.GetAnnotations())
	found, err := describe(given, object, nil, object.GetName(), prices)
	if err != nil {
		return Type{}, err
	}
	limit, err := given.count(v1alpha1.DiscoveredMaxMachinesAnnotation)
	if err != nil {
		return Type{}, err
	}
	zones, err := given.zones()
	if err != nil {
		return Type{}, err
	}
	if len(zones) == 0 {
		zones = []string{found.zone}
	}
	ref := &clusterv1.ContractVersionedObjectReference{
		APIGroup: object.GroupVersionKind().Group, Kind: object.GetKind(), Name: object.GetName(),
	}
	var limiter *Limiter
	if limit != nil {
		limiter = &Limiter{APIGroup: ref.APIGroup, Kind: ref.Kind, Labels: object.GetLabels()}
	}
	for _, zone := range zones {
		found.Offerings = append(found.Offerings, Offering{
			Zone: zone, CapacityType: found.capacityType, Price: found.price, ListPrice: found.price, MaxMachines: limit, Limiter: limiter, InfrastructureRef: ref, Taints: found.taints,
		})
	}
	return found.Type, nil
}

// fromMachineDeployment returns the instance type of an existing MachineDeployment, with
// its one offering. Capacity that its annotations do not set is that of its infrastructure
// template, which is nil if that could not be found.
func fromMachineDeployment(deployment *clusterv1.MachineDeployment, infrastructure *unstructured.Unstructured, template *v1alpha1.KarpenterMachineTemplate, prices prices) (Type, error) {
	if owner := deployment.Labels[v1alpha1.TemplateLabel]; owner != "" && owner != template.Name {
		return Type{}, fmt.Errorf("it is adopted by KarpenterMachineTemplate %s: change the selectors so that only one template selects it", owner)
	}
	if _, member := deployment.Labels[v1alpha1.OtherMemberLabel]; member {
		return Type{}, fmt.Errorf("karpenter-provider-cluster-api scales it: remove the label %s", v1alpha1.OtherMemberLabel)
	}
	given := annotations(deployment.Annotations)
	machine := deployment.Spec.Template
	found, err := describe(given, infrastructure, machine.Labels, deployment.Name, prices)
	if err != nil {
		return Type{}, err
	}
	limit, err := given.count(clusterv1.AutoscalerMaxSizeAnnotation)
	if err != nil {
		return Type{}, err
	}
	own := lo.FromPtr(deployment.Spec.Replicas)
	if _, adopted := given[v1alpha1.AdoptedAnnotation]; adopted {
		kept, err := given.count(v1alpha1.UnmanagedReplicasAnnotation)
		if err != nil {
			return Type{}, err
		}
		own = lo.FromPtrOr(kept, own)
	}
	if limit != nil {
		limit = new(max(0, *limit-own))
	}
	zone := found.zone
	if zone == "" {
		if zone, err = zoneOf(machine.Spec.FailureDomain, template.Spec.FailureDomains); err != nil {
			return Type{}, err
		}
	}
	if len(validation.IsValidLabelValue(zone)) > 0 {
		return Type{}, fmt.Errorf("spec.template.spec.failureDomain: expected a label value, because Nodes have it as a label, found %q", zone)
	}
	found.Offerings = []Offering{{
		Zone: zone, CapacityType: found.capacityType, Price: found.price, ListPrice: found.price, MaxMachines: limit, MachineDeployment: deployment.Name, Taints: decisive(append(taintsOf(machine.Spec), found.taints...)),
		Paused: lo.FromPtr(deployment.Spec.Paused) || capiannotations.HasPaused(deployment),
	}}
	return found.Type, nil
}

// zoneOf returns the zone that Nodes in a failure domain report, which is the failure domain itself unless
// spec.failureDomains of the template names it.
func zoneOf(failureDomain string, given []v1alpha1.ZoneFailureDomain) (string, error) {
	zones := lo.FilterMap(given, func(d v1alpha1.ZoneFailureDomain, _ int) (string, bool) {
		return string(d.Zone), string(d.FailureDomain) == failureDomain
	})
	if len(zones) > 1 {
		return "", fmt.Errorf("spec.template.spec.failureDomain %s is that of the zones %s in spec.failureDomains: set the label %s in the annotation %s",
			failureDomain, budget.Names(zones, maxZonesNamed), corev1.LabelTopologyZone, labelsAnnotation)
	}
	return lo.FirstOr(zones, failureDomain), nil
}

// description is a discovered type before its offerings are added.
type description struct {
	Type
	zone, capacityType string
	price              float64
	taints             []Taint
}

// describe returns the type that follows from annotations, the status of an infrastructure
// template and the labels of Machines. Labels of Machines count only if Cluster API
// propagates them to the Node, because no Pod can match a label that Nodes lack.
func describe(given annotations, infrastructure *unstructured.Unstructured, machine map[string]string, name string, prices prices) (description, error) {
	labels, err := given.labels()
	if err != nil {
		return description{}, err
	}
	found := description{zone: labels[corev1.LabelTopologyZone]}
	found.Name = lo.CoalesceOrEmpty(given[v1alpha1.DiscoveredInstanceTypeAnnotation], labels[corev1.LabelInstanceTypeStable], machine[corev1.LabelInstanceTypeStable], name)
	if len(validation.IsValidLabelValue(found.Name)) > 0 {
		return description{}, fmt.Errorf("the name of the instance type must be a label value, found %q: set the annotation %s", found.Name, v1alpha1.DiscoveredInstanceTypeAnnotation)
	}
	reported, err := statusCapacity(infrastructure)
	if err != nil {
		return description{}, err
	}
	annotated, err := given.capacity()
	if err != nil {
		return description{}, err
	}
	found.Capacity = lo.OmitBy(merged(reported, annotated), func(_ corev1.ResourceName, quantity resource.Quantity) bool { return quantity.IsZero() })
	if quantity := found.Capacity[corev1.ResourceCPU]; quantity.Sign() <= 0 {
		return description{}, missing("cpu", cpuAnnotation)
	}
	if quantity := found.Capacity[corev1.ResourceMemory]; quantity.Sign() <= 0 {
		return description{}, missing("memory", memoryAnnotation)
	}
	if found.VolumeAttachmentLimits, err = given.volumes(); err != nil {
		return description{}, err
	}
	if found.Devices, err = given.devices(); err != nil {
		return description{}, err
	}
	found.Labels = nodeLabels(merged(nodeInfo(infrastructure), capilabels.GetManagedLabels(machine), labels))
	if found.capacityType, err = given.capacityType(); err != nil {
		return description{}, err
	}
	taints, err := given.taints()
	if err != nil {
		return description{}, err
	}
	found.taints = decisive(taints)
	found.price, err = given.price(found.Capacity, found.capacityType, prices)
	return found, err
}

func missing(resource, annotation string) error {
	return fmt.Errorf("expected %s in the status.capacity of the infrastructure template or the annotation %s, found neither", resource, annotation)
}

// statusCapacity returns the capacity that the provider reports in the status of an
// infrastructure template, if any (Cluster API's contract for infra-machine templates).
func statusCapacity(infrastructure *unstructured.Unstructured) (corev1.ResourceList, error) {
	capacity := corev1.ResourceList{}
	if infrastructure == nil {
		return capacity, nil
	}
	reported, _, err := unstructured.NestedMap(infrastructure.Object, "status", "capacity")
	if err != nil {
		return nil, errors.New("status.capacity: expected a map of quantities")
	}
	for _, name := range slices.Sorted(maps.Keys(reported)) {
		quantity, err := parseQuantity(fmt.Sprint(reported[name]))
		if err != nil {
			return nil, fmt.Errorf("status.capacity.%s: expected %s, found %q", name, expectQuantity, fmt.Sprint(reported[name]))
		}
		capacity[corev1.ResourceName(name)] = quantity
	}
	return capacity, nil
}

// nodeInfo returns the labels that follow from the nodeInfo that a provider reports.
func nodeInfo(infrastructure *unstructured.Unstructured) map[string]string {
	labels := map[string]string{}
	if infrastructure == nil {
		return labels
	}
	for field, label := range map[string]string{"architecture": corev1.LabelArchStable, "operatingSystem": corev1.LabelOSStable} {
		value, _, err := unstructured.NestedString(infrastructure.Object, "status", "nodeInfo", field)
		if err == nil && value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			labels[label] = value
		}
	}
	return labels
}
