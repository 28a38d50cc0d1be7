// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// A MachineDeployment whose Machines get their bootstrap data from a Secret refers to no bootstrap template.
func TestReferences(t *testing.T) {
	template := Template{Kind: schema.GroupKind{Group: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate"}, Name: "workers"}
	withSecret := func(d *clusterv1.MachineDeployment) {
		d.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("join")}
	}
	for name, tc := range map[string]struct {
		resource Resource
		want     []Template
	}{
		"a template": {deployment("served", nil), []Template{template}},
		"a Secret":   {deployment("served", withSecret), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.resource.References(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The machines of a control plane can have an identity that workers should not have, so their template is none for
// workers, unless one in the management cluster uses it or the platform team allows it.
func TestTemplateOfTheControlPlane(t *testing.T) {
	for name, tc := range map[string]struct {
		controlPlane, allowed string
		used                  bool
		want                  string
	}{
		"of the contract": {
			controlPlane: `{machineTemplate: {spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSMachineTemplate, name: workers}}}}`,
			want:         "AWSMachineTemplate workers is that of the control plane of Cluster fleet/served, whose identity and networks are not for workers: name another base template, or add AWSMachineTemplate/workers to the operator's --allowed-base-templates",
		},
		"of the contract before": {
			controlPlane: `{machineTemplate: {infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AWSMachineTemplate, name: workers, namespace: fleet}}}`,
			want:         "is that of the control plane",
		},
		"that workers use, too": {
			controlPlane: `{machineTemplate: {spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSMachineTemplate, name: workers}}}}`, used: true,
		},
		"that is allowed": {
			controlPlane: `{machineTemplate: {spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSMachineTemplate, name: workers}}}}`, allowed: "AWSMachineTemplate/*",
		},
		"another one": {
			controlPlane: `{machineTemplate: {spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSMachineTemplate, name: control-plane}}}}`,
		},
		"one of another kind": {
			controlPlane: `{machineTemplate: {spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: OtherMachineTemplate, name: workers}}}}`,
		},
		"of a control plane without machines": {controlPlane: `{replicas: 3}`},
		"of another form":                     {controlPlane: `{machineTemplate: {spec: {infrastructureRef: workers}, infrastructureRef: [workers]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			base := infrastructure(t, "AWSMachineTemplate", `{template: {spec: {}}}`)
			allowed := allowedBy(t, "", tc.allowed, base)
			allowed.Own.AddControlPlane(infrastructure(t, "KubeadmControlPlane", tc.controlPlane))
			if tc.used {
				allowed.Own.Templates.Insert(TemplateOf(base))
			}
			if tc.want == "" {
				check(t, allowed.Base(base), "")
			} else {
				check(t, allowed.Base(base), v1alpha1.ReasonBaseTemplateNotAllowed, tc.want)
			}
		})
	}
}
