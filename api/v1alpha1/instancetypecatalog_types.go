// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InstanceTypeCatalog is a list of instance types with their prices. KarpenterMachineTemplates
// refer to it in spec.catalogRefs, and several can refer to the same one. It can be changed
// without a change of the templates, for example when prices change. kubectl karpenter-capi
// catalog import makes one from what the command lines of clouds print.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=itc,categories={karpenter,cluster-api}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the catalog has instance types that can be used"
// +kubebuilder:printcolumn:name="InstanceTypes",type=integer,JSONPath=`.status.instanceTypes`,description="Number of instance types that can be used"
// +kubebuilder:printcolumn:name="Offerings",type=integer,JSONPath=`.status.offerings`,description="Number of offerings of these instance types"
// +kubebuilder:printcolumn:name="Templates",type=integer,JSONPath=`.status.templates`,description="Number of KarpenterMachineTemplates that refer to the catalog"
// +kubebuilder:printcolumn:name="Source",type=string,priority=1,JSONPath=`.spec.source`,description="Where the instance types and prices are from"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="InstanceTypesValid")].message`,description="Which instance types cannot be used, and why"
type InstanceTypeCatalog struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the list of instance types.
	// +required
	Spec InstanceTypeCatalogSpec `json:"spec,omitzero"`

	// status is what the operator observes.
	// +optional
	Status InstanceTypeCatalogStatus `json:"status,omitempty,omitzero"`
}

// InstanceTypeCatalogSpec is a list of instance types.
//
// +kubebuilder:validation:MinProperties=1
type InstanceTypeCatalogSpec struct {
	// source describes where the instance types and prices are from, and of which day, for
	// people who read it. Default: none.
	// Example: aws us-east-1, 2026-11-20.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Source string `json:"source,omitempty"`

	// currency of all prices in the list, as in ISO 4217. All offerings of a cluster must
	// have the same currency. If this is another one, set pricing.conversion.
	// Default: none. Example: USD.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=3
	// +kubebuilder:validation:Pattern=`^[A-Z]{3}$`
	Currency string `json:"currency,omitempty"`

	// pricing computes the prices that instance types and offerings do not set, and what is
	// paid if that differs from these prices. Another field manager than that of the price
	// list can own parts of it, such as adjustments.
	// Default: none; then each instance type or each of its offerings must have a price.
	// Example: {factors: [{capacityType: spot, factor: "0.35"}]}.
	// +optional
	Pricing *CatalogPricing `json:"pricing,omitempty"`

	// offerings are the ways to buy the instance types that set no offerings themselves,
	// at most 64, and at most one for each pair of zone and capacity type.
	// Default: none. Example: [{zones: [us-east-1a, us-east-1b]}, {zones: [us-east-1a], capacityType: spot}].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Offerings []Offering `json:"offerings,omitempty"`

	// instanceTypes are the shapes of machine that the catalog lists, at most 1000, each
	// with another name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	InstanceTypes []InstanceType `json:"instanceTypes,omitempty"`
}

// InstanceTypeCatalogStatus is what the operator observes.
type InstanceTypeCatalogStatus struct {
	// conditions are Ready, InstanceTypesReady, on which it depends and which is True while
	// at least one instance type can be used, InstanceTypesValid, which is False while some
	// cannot be used, and PriceAdjustmentsValid, which is False while an adjustment has no
	// effect. Templates use all others.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Conditions []status.Condition `json:"conditions,omitempty"`

	// instanceTypes is the number of instance types that can be used.
	// +optional
	InstanceTypes int32 `json:"instanceTypes"`

	// offerings is the number of offerings of these instance types: one for each
	// instance type, zone and capacity type.
	// +optional
	Offerings int32 `json:"offerings"`

	// templates is the number of KarpenterMachineTemplates that refer to the catalog.
	// +optional
	Templates int32 `json:"templates"`
}

// InstanceTypeCatalogList is a list of InstanceTypeCatalogs.
//
// +kubebuilder:object:root=true
type InstanceTypeCatalogList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the catalogs.
	Items []InstanceTypeCatalog `json:"items"`
}
