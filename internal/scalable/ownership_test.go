// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// Clusters of one namespace with templates of one name and content share nothing that is
// generated: each operator writes and deletes what it has generated.
func TestClustersOfANamespaceShareNothing(t *testing.T) {
	onePatch := func(t *v1alpha1.KarpenterMachineTemplate, path string) *v1alpha1.KarpenterMachineTemplate {
		t.Spec.Patches = []v1alpha1.Patch{patchOf(path, "{{ .instanceType }}")}
		return t
	}
	pool := poolOf(t, "DockerMachinePoolTemplate", `{template: {spec: {template: {}}}}`)
	for name, tc := range map[string]struct {
		template       *v1alpha1.KarpenterMachineTemplate
		infrastructure *unstructured.Unstructured
		objects        int
	}{
		"a base that nothing changes": {template: template(), infrastructure: infrastructure()},
		"a copy":                      {template: patched(), infrastructure: infrastructure(), objects: 1},
		"a MachinePool":               {template: pooled(pool.GetKind()), infrastructure: pool, objects: 2},
		"a MachinePool with patches": {
			template: onePatch(pooled(pool.GetKind()), "/spec/template/spec/template/type"), infrastructure: pool, objects: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			made := map[string]sets.Set[string]{}
			for _, cluster := range []string{"prod", "staging"} {
				generator, err := NewGenerator(types.NamespacedName{Namespace: served.Namespace, Name: cluster}, tc.template,
					Bases{Infrastructure: tc.infrastructure, Bootstrap: bootstrap()})
				if err != nil {
					t.Fatal(err)
				}
				offered, _ := catalog.Merge(tc.template, nil)
				generated, err := generator.Generate(&offered[0], offered[0].Find(spotA.Zone, spotA.CapacityType))
				if err != nil {
					t.Fatal(err)
				}
				if len(generated.Objects) != tc.objects {
					t.Errorf("Cluster %s: got %d objects, want %d", cluster, len(generated.Objects), tc.objects)
				}
				made[cluster] = sets.New("resource " + generated.Resource.GetName())
				for _, object := range generated.Objects {
					made[cluster].Insert(object.GetKind() + " " + object.GetName())
					if got := object.GetLabels()[clusterv1.ClusterNameLabel]; got != cluster {
						t.Errorf("%s %s of Cluster %s has the label of Cluster %q", object.GetKind(), object.GetName(), cluster, got)
					}
				}
			}
			if both := made["prod"].Intersection(made["staging"]); len(both) > 0 {
				t.Errorf("generated for both Clusters: %v", sets.List(both))
			}
		})
	}
}

func TestTemplateOf(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"generated for the Cluster":     {labels: GeneratedLabels(served, "general"), want: "general"},
		"generated for another Cluster": {labels: GeneratedLabels(types.NamespacedName{Namespace: served.Namespace, Name: "staging"}, "general")},
		"generated, without a Cluster":  {labels: map[string]string{v1alpha1.TemplateLabel: "general"}},
		"not generated, of the Cluster": {labels: map[string]string{clusterv1.ClusterNameLabel: served.Name}},
		"not generated, of no Cluster":  {},
	} {
		t.Run(name, func(t *testing.T) {
			if got := TemplateOf(&metav1.ObjectMeta{Labels: tc.labels}, served); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// An object of that name that exists is used only if it was generated for the same
// template of the same Cluster.
func TestCreate(t *testing.T) {
	labelsOf := func(cluster, template string) map[string]string {
		return GeneratedLabels(types.NamespacedName{Namespace: served.Namespace, Name: cluster}, template)
	}
	for name, tc := range map[string]struct {
		exists  bool
		labels  map[string]string
		created bool
		refused bool
	}{
		"nothing exists":                 {created: true},
		"it exists":                      {exists: true, labels: labelsOf(served.Name, "general")},
		"one of another Cluster exists":  {exists: true, labels: labelsOf("staging", "general"), refused: true},
		"one of another template exists": {exists: true, labels: labelsOf(served.Name, "other"), refused: true},
		"one of a user exists":           {exists: true, refused: true},
		"one of a user in the Cluster":   {exists: true, labels: map[string]string{clusterv1.ClusterNameLabel: served.Name}, refused: true},
	} {
		generated := infrastructure()
		generated.SetName("general-workers-12345678")
		generated.SetResourceVersion("")
		deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: "general-m5-12345678"}}
		for kind, object := range map[string]client.Object{"AWSMachineTemplate": generated, "MachineDeployment": deployment} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				object.SetLabels(GeneratedLabels(served, "general"))
				api := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
				if tc.exists {
					existing := object.DeepCopyObject().(client.Object)
					existing.SetLabels(tc.labels)
					if err := api.Create(t.Context(), existing); err != nil {
						t.Fatal(err)
					}
				}
				created, err := Create(t.Context(), &operator.Clusters{Cluster: served, Management: clusterOf{client: api}}, object)
				if created != tc.created || (err != nil) != tc.refused {
					t.Fatalf("got created=%t and %v, want created=%t refused=%t", created, err, tc.created, tc.refused)
				}
				want := kind + " " + client.ObjectKeyFromObject(object).String() + " was not generated for KarpenterMachineTemplate general of Cluster clusters/prod, delete or rename it"
				if tc.refused && !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			})
		}
	}
}
