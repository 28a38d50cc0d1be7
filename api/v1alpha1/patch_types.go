// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// PatchTarget says which of the generated templates a patch changes.
//
// +kubebuilder:validation:Enum=Infrastructure;Bootstrap
type PatchTarget string

const (
	// PatchTargetInfrastructure is the copy of template.spec.infrastructureRef.
	PatchTargetInfrastructure PatchTarget = "Infrastructure"
	// PatchTargetBootstrap is the copy of template.spec.bootstrap.configRef.
	PatchTargetBootstrap PatchTarget = "Bootstrap"
)

// Patch changes the copy of a base template that is made for one offering. Go
// templates in it have the functions of Masterminds/sprig that read nothing from
// outside, and these variables: instanceType, zone, failureDomain, region,
// capacityType, reservationID, architecture, operatingSystem, labels (all that the
// instance type gives to nodes, as in
// {{ index .labels "karpenter.cluster.x-k8s.io/instance-cpu" }}), clusterName,
// kubernetesVersion and templateName. Those that an offering has not are empty.
type Patch struct {
	// target is the template that is changed: Infrastructure or Bootstrap.
	// +required
	Target PatchTarget `json:"target"`

	// enabledIf is a Go template; the patch is applied where it renders to true.
	// Default: everywhere. Example: {{ eq .capacityType "spot" }}.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	EnabledIf string `json:"enabledIf,omitempty"`

	// jsonPatches are applied in order, at most 100. Should one fail, none is, and
	// the offering is not available.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	JSONPatches []JSONPatch `json:"jsonPatches"`
}

// JSONPatch is one operation of RFC 6902. add and replace need exactly one of value
// and valueFrom; with none or both, no offering that the patch is for is available.
//
// +kubebuilder:validation:XValidation:rule="self.op != 'remove' || !has(self.valueFrom)",message="valueFrom must not be set for remove",fieldPath=".valueFrom"
type JSONPatch struct {
	// op is add, replace or remove.
	// +required
	// +kubebuilder:validation:Enum=add;replace;remove
	Op string `json:"op"`

	// path of the field, which must be below /spec/. replace and remove need a field
	// that exists; add needs its parent.
	// Example: /spec/template/spec/instanceType.
	// +required
	// +kubebuilder:validation:MinLength=7
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/spec/')",message="path must be below /spec/"
	Path string `json:"path"`

	// value of any type. Example: {}.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`

	// valueFrom computes the value.
	// +optional
	ValueFrom *JSONPatchValue `json:"valueFrom,omitempty"`
}

// JSONPatchValue computes a value.
type JSONPatchValue struct {
	// template is a Go template that renders to YAML: what it renders to is a number
	// if it looks like one, so quote strings that may: "{{ .zone | quote }}".
	// Example: {{ .instanceType }}.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Template string `json:"template"`
}
