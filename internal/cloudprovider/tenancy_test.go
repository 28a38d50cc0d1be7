// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Create asks again for what conditions of the template report, because a cache or a status can be behind. The
// status of this template is Ready.
func TestCreateOfWhatIsNotAllowed(t *testing.T) {
	type (
		template = *v1alpha1.KarpenterMachineTemplate
		catalog  = *v1alpha1.InstanceTypeCatalog
	)
	patched := func(t template, listed catalog) {
		t.Spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTargetInfrastructure, JSONPatches: []v1alpha1.JSONPatch{
			{Op: "add", Path: "/spec/template/spec/userDataSecret", Value: &apiextensionsv1.JSON{Raw: []byte(`{"name": "credentials"}`)}},
		}}}
	}
	own := func(cluster string, labels map[string]string) []client.Object {
		base := object("infrastructure.cluster.x-k8s.io/v1beta2", "AWSMachineTemplate", "fleet", "own", nil)
		base.(*unstructured.Unstructured).Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"userDataSecret": map[string]any{"name": "credentials"}}}}
		deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "own", Labels: labels}}
		deployment.Spec.Template.Spec.ClusterName = cluster
		deployment.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: "own"}
		return []client.Object{base, deployment}
	}
	for name, tc := range map[string]struct {
		change  func(template, catalog)
		objects []client.Object
		want    string // in the error; empty if the claim is launched
	}{
		"another Secret as bootstrap data": {
			change: func(t template, listed catalog) {
				t.Spec.Template.Spec.Bootstrap.DataSecretName = new("prod-kubeconfig")
			},
			want: "names Secret prod-kubeconfig",
		},
		"a Secret in a patch":                     {change: patched, want: "spec.template.spec.userDataSecret.name of AWSMachineTemplate workers names Secret credentials"},
		"one that the Cluster uses itself":        {change: patched, objects: own("served", nil)},
		"one that another Cluster uses":           {change: patched, objects: own("other", nil), want: "names Secret credentials"},
		"one that only a generated resource uses": {change: patched, objects: own("served", map[string]string{v1alpha1.TemplateLabel: "general"}), want: "names Secret credentials"},
		"a base template of another Cluster": {
			change:  func(t template, listed catalog) { t.Spec.Template.Spec.InfrastructureRef.Name = "foreign" },
			objects: []client.Object{object("infrastructure.cluster.x-k8s.io/v1beta2", "AWSMachineTemplate", "fleet", "foreign", map[string]string{clusterv1.ClusterNameLabel: "other"})},
			want:    "AWSMachineTemplate foreign belongs to Cluster other",
		},
		"that of an instance type": {
			change: func(t template, listed catalog) {
				ref := *t.Spec.Template.Spec.InfrastructureRef
				ref.Name = "foreign"
				listed.Spec.InstanceTypes[0].InfrastructureRef = &ref
			},
			objects: []client.Object{object("infrastructure.cluster.x-k8s.io/v1beta2", "AWSMachineTemplate", "fleet", "foreign", map[string]string{clusterv1.ClusterNameLabel: "other"})},
			want:    "AWSMachineTemplate foreign belongs to Cluster other",
		},
		"a worker that looks like a control plane": {
			change: func(t template, listed catalog) {
				t.Spec.Template.Metadata.Labels = map[string]v1alpha1.LabelValue{clusterv1.MachineControlPlaneLabel: ""}
			},
			want: "spec.template.metadata.labels may not contain cluster.x-k8s.io/control-plane",
		},
	} {
		t.Run(name, func(t *testing.T) {
			provider, _ := newProviderOf(tc.change, tc.objects...)
			created, err := provider.Create(t.Context(), waiting())
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v and error %v, want %q", created, err, tc.want)
			}
		})
	}
}
