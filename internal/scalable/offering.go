// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// OfferingOf returns the offering of a generated object.
func OfferingOf(object metav1.Object) catalog.Key {
	labels := object.GetLabels()
	return catalog.Key{
		InstanceType: labels[v1alpha1.InstanceTypeLabel],
		Zone:         labels[v1alpha1.ZoneLabel],
		CapacityType: labels[v1alpha1.CapacityTypeLabel],
	}
}

// OfferingLabels returns the labels of a resource and its Machines that identify the
// template and offering.
func OfferingLabels(template string, offering catalog.Key) map[string]string {
	labels := map[string]string{
		v1alpha1.TemplateLabel:     template,
		v1alpha1.InstanceTypeLabel: offering.InstanceType,
		v1alpha1.CapacityTypeLabel: offering.CapacityType,
	}
	if offering.Zone != "" {
		labels[v1alpha1.ZoneLabel] = offering.Zone
	}
	return labels
}

// LinkLabels returns the labels that a Machine gets with its link: those of the offering, if
// its resource is an adopted one. Machines of generated resources have them from their template.
func LinkLabels(resource *Resource) map[string]string {
	if resource == nil || !Adopted(resource) {
		return nil
	}
	return OfferingLabels(resource.GetLabels()[v1alpha1.TemplateLabel], OfferingOf(resource))
}
