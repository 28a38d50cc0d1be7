// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// cluster is the Cluster that the samples are for.
var cluster = types.NamespacedName{Namespace: "default", Name: "example"}

// made is what is generated for one offering.
type made struct {
	instanceType *catalog.Type
	offering     *catalog.Offering
	deployment   *clusterv1.MachineDeployment
	// infrastructure and bootstrap are the spec.template.spec of what the
	// MachineDeployment refers to; bootstrap is nil for a Secret.
	infrastructure, bootstrap map[string]any
}

func (m made) String() string {
	return m.instanceType.KeyOf(m.offering).String()
}

// generate makes what the operator makes for each offering, and creates it until the
// test ends. It returns also how many objects there are of each kind.
func (s *sample) generate(t *testing.T) ([]made, map[string]int) {
	t.Helper()
	generator, err := scalable.NewGenerator(cluster, s.template, s.bases)
	if err != nil {
		t.Fatal(err)
	}
	var all []made
	counts := map[string]int{}
	objects := map[string]*unstructured.Unstructured{}
	for _, base := range s.objects {
		objects[base.GetKind()+"/"+base.GetName()] = base
	}
	offered, problems := catalog.Merge(s.template, nil)
	if len(problems) > 0 {
		t.Errorf("not all can be offered: %v", problems)
	}
	for i := range offered {
		instanceType := &offered[i]
		for j := range instanceType.Offerings {
			offering := &instanceType.Offerings[j]
			generated, err := generator.Generate(instanceType, offering)
			if err != nil {
				t.Fatal(err)
			}
			for _, template := range generated.Objects {
				key := template.GetKind() + "/" + template.GetName()
				if objects[key] == nil { // offerings share templates of the same content
					create(t, template)
					objects[key] = template
					counts[template.GetKind()]++
				}
			}
			create(t, generated.Resource.API())
			counts[string(generated.Resource.Kind().Name())]++
			m := made{instanceType: instanceType, offering: offering, deployment: generated.Resource.API().(*clusterv1.MachineDeployment)}
			spec := m.deployment.Spec.Template.Spec
			m.infrastructure = templateSpec(t, objects, spec.InfrastructureRef)
			if spec.Bootstrap.ConfigRef.IsDefined() {
				m.bootstrap = templateSpec(t, objects, spec.Bootstrap.ConfigRef)
			}
			all = append(all, m)
		}
	}
	return all, counts
}

// templateSpec returns the spec.template.spec of the template that is referred to.
func templateSpec(t *testing.T, objects map[string]*unstructured.Unstructured, ref clusterv1.ContractVersionedObjectReference) map[string]any {
	t.Helper()
	object := objects[ref.Kind+"/"+ref.Name]
	if object == nil {
		t.Fatalf("there is no %s %s", ref.Kind, ref.Name)
	}
	spec, found, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
	if err != nil || !found {
		t.Fatalf("%s %s has no spec.template.spec: %v", ref.Kind, ref.Name, err)
	}
	return spec
}

// describe returns numbers of objects in words.
func describe(counts map[string]int) string {
	total := 0
	var kinds []string
	for kind, count := range counts {
		total += count
		kinds = append(kinds, fmt.Sprintf("%s: %d", kind, count))
	}
	slices.Sort(kinds)
	return fmt.Sprintf("%d generated objects accepted by its CRDs (%s)", total, strings.Join(kinds, ", "))
}
