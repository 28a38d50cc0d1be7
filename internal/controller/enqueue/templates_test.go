// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/fixture"
)

// Events of generated objects concern the template that they were generated for, and
// those of other Clusters none. Any template can refer to what was not generated.
func TestTemplatesOfReferencedObjects(t *testing.T) {
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	workload := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		&v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "batch"}},
		&v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}}).Build()
	templates := NewTemplates(&operator.Clusters{Cluster: served, Workload: fixture.Cluster{Client: workload}})
	neighbour := types.NamespacedName{Namespace: served.Namespace, Name: "neighbour"}
	for name, tc := range map[string]struct {
		labels                map[string]string
		referenced, generated []string
	}{
		"generated":                     {labels: scalable.GeneratedLabels(served, "general"), referenced: []string{"general"}, generated: []string{"general"}},
		"generated for another Cluster": {labels: scalable.GeneratedLabels(neighbour, "general")},
		"a base":                        {referenced: []string{"batch", "general"}},
		"a base with a Cluster's name":  {labels: map[string]string{clusterv1.ClusterNameLabel: neighbour.Name}, referenced: []string{"batch", "general"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			object.SetLabels(tc.labels)
			if diff := cmp.Diff(tc.referenced, templates.OfReferenced(t.Context(), object), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("of a kind that templates refer to (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.generated, templates.OfGenerated(t.Context(), object), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("of a kind that is generated (-want +got):\n%s", diff)
			}
		})
	}
}

// Events of a MachineDeployment concern the templates that follow it.
func TestTemplatesOfPattern(t *testing.T) {
	follower := func(name string, from *v1alpha1.MachineTemplateSource) *v1alpha1.KarpenterMachineTemplate {
		template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
		template.Spec.Template.From = from
		return template
	}
	workload := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		follower("by-name", &v1alpha1.MachineTemplateSource{MachineDeployment: "served-md-0-x7k2p"}),
		follower("by-entry", &v1alpha1.MachineTemplateSource{MachineDeploymentTopology: "md-0"}),
		follower("other", &v1alpha1.MachineTemplateSource{MachineDeployment: "md-0"}),
		follower("none", nil)).Build()
	templates := NewTemplates(&operator.Clusters{Workload: fixture.Cluster{Client: workload}})
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "served-md-0-x7k2p", Labels: map[string]string{
		clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: "md-0",
	}}}
	if diff := cmp.Diff([]string{"by-entry", "by-name"}, templates.OfPattern(t.Context(), deployment)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
