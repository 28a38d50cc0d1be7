// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/patch"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// The patches must turn the base into the machine that the template declares. Templates of machine pools also have all
// fields that are checked.
func TestPatchesMakeTheDeclaredMachines(t *testing.T) {
	for _, kind := range kinds.All {
		t.Run(string(kind), func(t *testing.T) { checkPatches(t, kind) })
	}
}

func checkPatches(t *testing.T, kind kinds.Kind) {
	t.Helper()
	base, template := &infrav1.SimulatedMachinePoolTemplate{}, &v1alpha1.KarpenterMachineTemplate{}
	read(t, kind, "1-machines.yaml", base)
	read(t, kind, "2-template.yaml", template)
	if got := template.Spec.ScalableResource.Kind; string(got) != string(kind) {
		t.Errorf("the template is for %ss", got)
	}
	if want := template.Spec.Template.Spec.InfrastructureRef; base.Kind != want.Kind || base.Name != want.Name {
		t.Errorf("the base is %s %s, and the template wants %s %s", base.Kind, base.Name, want.Kind, want.Name)
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&base.Spec)
	if err != nil {
		t.Fatal(err)
	}
	patches, err := patch.Compile(template.Spec.Patches)
	if err != nil {
		t.Fatal(err)
	}
	for _, instanceType := range importedTypes(t) {
		labels := instanceType.NodeLabels()
		for i := range instanceType.Offerings {
			offering := &instanceType.Offerings[i]
			operations, err := patches.Render(v1alpha1.PatchTargetInfrastructure, patch.Variables{
				InstanceType: instanceType.Name, Zone: offering.Zone, CapacityType: offering.CapacityType,
				Region: labels[corev1.LabelTopologyRegion], Labels: labels,
			})
			if err != nil {
				t.Fatalf("%s: %v", instanceType.Name, err)
			}
			patched, err := operations.Apply(spec)
			if err != nil {
				t.Fatalf("%s: %v", instanceType.Name, err)
			}
			check(t, &instanceType, offering, patched)
		}
	}
}

// importedTypes returns the instance types of the imported catalog: 9 types in 3 zones, on demand and spot.
func importedTypes(t *testing.T) []catalog.Type {
	t.Helper()
	content, err := importCatalog()
	if err != nil {
		t.Fatal(err)
	}
	imported := &v1alpha1.InstanceTypeCatalog{}
	if err := yaml.UnmarshalStrict(content, imported); err != nil {
		t.Fatal(err)
	}
	types, problems := catalog.Expand(&imported.Spec)
	if offerings := lo.SumBy(types, func(t catalog.Type) int { return len(t.Offerings) }); len(types) != 9 || offerings != 9*3*2 || len(problems) > 0 {
		t.Fatalf("got %d instance types with %d offerings, problems %v", len(types), offerings, problems)
	}
	return types
}

func check(t *testing.T, instanceType *catalog.Type, offering *catalog.Offering, patched map[string]any) {
	t.Helper()
	made := infrav1.SimulatedMachinePoolTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(patched, &made, true); err != nil {
		t.Fatalf("%s: %v", instanceType.Name, err)
	}
	spec := &made.Template.Spec
	if spec.InstanceType != instanceType.Name || spec.Region != "us-east-1" || spec.Spot != (offering.CapacityType == "spot") {
		t.Errorf("%s/%s: got type %q, region %q, spot %t", instanceType.Name, offering.CapacityType, spec.InstanceType, spec.Region, spec.Spot)
	}
	if !equality.Semantic.DeepEqual(spec.Capacity, instanceType.Capacity) {
		t.Errorf("%s: got capacity %v, declared is %v", instanceType.Name, spec.Capacity, instanceType.Capacity)
	}
}

// read reads the first object of a manifest.
func read(t *testing.T, kind kinds.Kind, name string, into any) {
	t.Helper()
	content, err := Read(name, kind)
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096).Decode(&object); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
