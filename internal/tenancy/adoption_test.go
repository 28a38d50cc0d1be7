// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// A template can use only those MachineDeployments that a user of the management cluster has released, and only base
// templates that it could also refer to.
func TestAdoption(t *testing.T) {
	const infrastructure, bootstrap = "AWSMachineTemplate/large", "KubeadmConfigTemplate/workers"
	for name, tc := range map[string]struct {
		consent string
		bases   string
		secret  bool // its bootstrap data is a Secret
		reason  string
		texts   []string
	}{
		"with consent":                {consent: "true"},
		"without consent":             {reason: v1alpha1.ReasonAdoptionNotAllowed, texts: []string{`give it the annotation karpenter.cluster.x-k8s.io/adoptable: "true"`}},
		"it was refused":              {consent: "false", reason: v1alpha1.ReasonAdoptionNotAllowed},
		"both base templates":         {consent: "true", bases: infrastructure + "," + bootstrap},
		"all base templates":          {consent: "true", bases: "*/*"},
		"all base templates, refused": {bases: "*/*", reason: v1alpha1.ReasonAdoptionNotAllowed},
		"only its bootstrap template": {consent: "true", bases: bootstrap, reason: v1alpha1.ReasonBaseTemplateNotAllowed, texts: []string{"AWSMachineTemplate large is not among", bootstrap}},
		"only the other one":          {consent: "true", bases: infrastructure, reason: v1alpha1.ReasonBaseTemplateNotAllowed, texts: []string{"KubeadmConfigTemplate workers is not among"}},
		"bootstrap data of a Secret":  {consent: "true", bases: infrastructure, secret: true},
		"none of them":                {consent: "true", bases: "AWSMachineTemplate/other", reason: v1alpha1.ReasonBaseTemplateNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := Parse("", tc.bases, "")
			if err != nil {
				t.Fatal(err)
			}
			d := &clusterv1.MachineDeployment{}
			if tc.consent != "" {
				d.Annotations = map[string]string{v1alpha1.AdoptableAnnotation: tc.consent}
			}
			d.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: "large"}
			d.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate", Name: "workers"}
			if tc.secret {
				d.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("join")}
			}
			check(t, rules.Adoption(d), tc.reason, tc.texts...)
		})
	}
}
