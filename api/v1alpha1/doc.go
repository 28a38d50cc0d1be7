// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the KarpenterMachineTemplate, which is Karpenter's NodeClass
// for Cluster API, the InstanceTypeCatalog, which templates share, and every label and
// annotation that this operator reads or writes.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.cluster.x-k8s.io
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group is the API group of this package, and the prefix of its labels and annotations.
const Group = "karpenter.cluster.x-k8s.io"

// Kind is the kind of templates.
const Kind = "KarpenterMachineTemplate"

// CatalogKind is the kind of catalogs.
const CatalogKind = "InstanceTypeCatalog"

// GroupVersion is the group and version of this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme adds the types of this package to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &KarpenterMachineTemplate{}, &KarpenterMachineTemplateList{}, &InstanceTypeCatalog{}, &InstanceTypeCatalogList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
