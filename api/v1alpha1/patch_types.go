// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// PatchTarget is the generated template that a patch changes.
//
// +kubebuilder:validation:Enum=Infrastructure;Bootstrap
type PatchTarget string

const (
	// PatchTargetInfrastructure is the copy of template.spec.infrastructureRef.
	PatchTargetInfrastructure PatchTarget = "Infrastructure"
	// PatchTargetBootstrap is the copy of template.spec.bootstrap.configRef.
	PatchTargetBootstrap PatchTarget = "Bootstrap"
)

// Patch changes the copy of a base template that the operator creates for one offering.
// Go templates in a patch can use the functions in docs/guides/patches.md, within its
// limits, and these variables: instanceType, zone, capacityType, failureDomain,
// reservationID, region, architecture, operatingSystem, labels, maxPods, kubeReserved,
// clusterName, kubernetesVersion and templateName. The guide describes each of them. A
// variable is empty if the offering has no such value. Another name is an error.
// Example: {{ get .labels "karpenter.cluster.x-k8s.io/instance-cpu" }}.
type Patch struct {
	// target is the template that the patch changes: Infrastructure or Bootstrap.
	// Example: Infrastructure.
	// +required
	Target PatchTarget `json:"target,omitempty"`

	// enabledIf is a Go template. The patch is applied where it renders to true.
	// Default: everywhere. Example: {{ eq .capacityType "spot" }}.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	EnabledIf string `json:"enabledIf,omitempty"`

	// jsonPatches are the operations of the patch, at most 100. They are applied in
	// order. If one fails, none is applied, and the offering is not available.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	JSONPatches []JSONPatch `json:"jsonPatches,omitempty"`
}

// JSONPatch is one operation of RFC 6902. add and replace need exactly one of value and
// valueFrom. If both or neither are set, the offerings to which the patch applies are not
// available.
//
// +kubebuilder:validation:XValidation:rule="self.op != 'remove' || !has(self.valueFrom)",message="valueFrom must not be set if op is remove",fieldPath=".valueFrom"
type JSONPatch struct {
	// op is the operation: add, replace or remove. Example: replace.
	// +required
	// +kubebuilder:validation:Enum=add;replace;remove
	Op string `json:"op,omitempty"`

	// path of the field, which must be below /spec/. replace and remove need a field that
	// exists. add needs its parent.
	// Example: /spec/template/spec/instanceType.
	// +required
	// +kubebuilder:validation:MinLength=7
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/spec/')",message="path must be below /spec/"
	Path string `json:"path,omitempty"`

	// value is the new value, of any type. Example: {}.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`

	// valueFrom computes the new value.
	// +optional
	ValueFrom *JSONPatchValue `json:"valueFrom,omitempty"`
}

// JSONPatchValue computes a value.
type JSONPatchValue struct {
	// template is a Go template that renders to YAML. A result that looks like a number
	// is a number, so quote strings that may look like one: "{{ .zone | quote }}". The
	// YAML must not have anchors and aliases, and has at most 64 KiB.
	// Example: {{ .instanceType }}.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Template string `json:"template,omitempty"`
}
