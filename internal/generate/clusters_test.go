// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Clusters of one namespace with equal templates of one name share no generated object: each
// operator writes and deletes only objects that it has generated.
func TestClustersOfANamespaceShareNothing(t *testing.T) {
	onePatch := func(t *v1alpha1.KarpenterMachineTemplate, path string) *v1alpha1.KarpenterMachineTemplate {
		t.Spec.Patches = []v1alpha1.Patch{fixture.Patch(path, "{{ .instanceType }}")}
		return t
	}
	pool := fixture.Base(t, "DockerMachinePoolTemplate", `{template: {spec: {template: {}}}}`)
	for name, tc := range map[string]struct {
		template       *v1alpha1.KarpenterMachineTemplate
		infrastructure *unstructured.Unstructured
		objects        int
	}{
		"a base without changes": {template: fixture.Template(), infrastructure: fixture.Infrastructure()},
		"a copy":                 {template: fixture.TemplateWithPatches(), infrastructure: fixture.Infrastructure(), objects: 1},
		"a MachinePool":          {template: fixture.PoolTemplate(pool.GetKind()), infrastructure: pool, objects: 2},
		"a MachinePool with patches": {
			template: onePatch(fixture.PoolTemplate(pool.GetKind()), "/spec/template/spec/template/type"), infrastructure: pool, objects: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			made := map[string]sets.Set[string]{}
			for _, cluster := range []string{"prod", "staging"} {
				generator, err := NewGenerator(types.NamespacedName{Namespace: fixture.Served.Namespace, Name: cluster}, tc.template,
					Bases{Infrastructure: tc.infrastructure, Bootstrap: fixture.Bootstrap()})
				if err != nil {
					t.Fatal(err)
				}
				offered := typesOf(tc.template)
				generated, err := generator.Generate(&offered[0], offered[0].Find(fixture.Spot.Zone, fixture.Spot.CapacityType))
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
