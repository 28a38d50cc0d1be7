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
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// cluster is the Cluster that the samples are for.
var cluster = types.NamespacedName{Namespace: "default", Name: "example"}

// made is what is generated for one offering.
type made struct {
	instanceType *catalog.Type
	offering     *catalog.Offering
	// failureDomain and machine are those of the scalable resource's Machines.
	failureDomain string
	machine       clusterv1.MachineSpec
	// infrastructure and bootstrap are the specs of the objects that the scalable resource refers
	// to, or the specs in these templates; bootstrap is nil for a Secret.
	infrastructure, bootstrap map[string]any
}

func (m made) String() string {
	return m.instanceType.KeyOf(m.offering).String()
}

// generate generates what the operator generates for each offering, and creates it until the test
// ends. It also returns how many objects of each kind there are.
func (s *sample) generate(t *testing.T) ([]made, map[string]int) {
	t.Helper()
	settings := s.template.Spec.ScalableResource
	if base := s.bases.Infrastructure; base != nil {
		if err := scalable.KindOf(settings).Accepts(base, settings); err != nil {
			t.Error(err)
		}
	}
	generator, err := generate.NewGenerator(cluster, s.template, s.bases)
	if err != nil {
		t.Fatal(err)
	}
	var all []made
	counts := map[string]int{}
	objects := map[string]*unstructured.Unstructured{}
	for _, base := range s.objects {
		objects[base.GetKind()+"/"+base.GetName()] = base
	}
	offered, problems := s.types(t)
	if len(problems) > 0 {
		t.Errorf("not all offerings are valid: %v", problems)
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
				if objects[key] == nil { // offerings share templates with the same content
					create(t, template)
					objects[key] = template
					counts[template.GetKind()]++
				}
			}
			create(t, generated.Resource.API())
			counts[string(generated.Resource.Kind().Name())]++
			m := made{instanceType: instanceType, offering: offering}
			m.machine, m.failureDomain = machinesOf(generated.Resource)
			m.infrastructure = referenced(t, objects, m.machine.InfrastructureRef)
			if m.machine.Bootstrap.ConfigRef.IsDefined() {
				m.bootstrap = referenced(t, objects, m.machine.Bootstrap.ConfigRef)
			}
			all = append(all, m)
		}
	}
	return all, counts
}

// machinesOf returns the spec and the failure domain of a scalable resource's Machines.
func machinesOf(resource *scalable.Resource) (clusterv1.MachineSpec, string) {
	if pool, is := resource.API().(*clusterv1.MachinePool); is {
		return pool.Spec.Template.Spec, strings.Join(pool.Spec.FailureDomains, ",")
	}
	machine := resource.API().(*clusterv1.MachineDeployment).Spec.Template.Spec
	return machine, machine.FailureDomain
}

// referenced returns the spec of the object that is referred to.
func referenced(t *testing.T, objects map[string]*unstructured.Unstructured, ref clusterv1.ContractVersionedObjectReference) map[string]any {
	t.Helper()
	object := objects[ref.Kind+"/"+ref.Name]
	if object == nil {
		t.Fatalf("there is no %s %s", ref.Kind, ref.Name)
	}
	return specOf(t, object)
}

// specOf returns the spec of an object, or the spec in a template.
func specOf(t *testing.T, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	path := []string{"spec"}
	if strings.HasSuffix(object.GetKind(), clusterv1.TemplateSuffix) {
		path = []string{"spec", "template", "spec"}
	}
	return nested(t, object.Object, path...)
}

func nested(t *testing.T, object map[string]any, path ...string) map[string]any {
	t.Helper()
	if len(path) == 0 {
		return object
	}
	fields, found, err := unstructured.NestedMap(object, path...)
	if err != nil || !found {
		t.Fatalf("there is no %s: %v", strings.Join(path, "."), err)
	}
	return fields
}

// describe describes numbers of objects.
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
