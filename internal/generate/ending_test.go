// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// If the resource of an offering is being deleted, its successor has another name, also all objects that only it
// refers to, and the same content.
func TestEndingResourceHasASuccessor(t *testing.T) {
	for kind, template := range map[string]*v1alpha1.KarpenterMachineTemplate{
		"MachineDeployment": fixture.TemplateWithPatches(),
		"MachinePool":       fixture.PoolTemplate("AzureMachinePool"),
	} {
		t.Run(kind, func(t *testing.T) {
			bases := Bases{Infrastructure: fixture.Infrastructure(), Bootstrap: fixture.Bootstrap()}
			if kind == "MachinePool" {
				bases.Infrastructure = fixture.Base(t, "AzureMachinePool", `{}`)
			}
			generator, err := NewGenerator(fixture.Served, template, bases)
			if err != nil {
				t.Fatal(err)
			}
			offered := typesOf(template)
			names := map[string]types.UID{}
			var hashes []string
			for _, ending := range []types.UID{"", "first", "second"} {
				generated, err := generator.generate(&offered[0], offered[0].Find("us-east-1a", "spot"), ending)
				if err != nil {
					t.Fatal(err)
				}
				name := generated.Resource.GetName()
				if other, used := names[name]; used || len(name) > maxNameLength {
					t.Errorf("after %q and %q the name is %s", other, ending, name)
				}
				names[name] = ending
				hashes = append(hashes, generated.Resource.GetLabels()[v1alpha1.TemplateHashLabel]+generated.Hashes.String())
				if kind == "MachinePool" {
					for _, object := range generated.Objects {
						if object.GetName() != name {
							t.Errorf("%s is named %s, want %s", object.GetKind(), object.GetName(), name)
						}
					}
				}
			}
			if hashes[0] != hashes[1] || hashes[1] != hashes[2] {
				t.Errorf("got hashes %v, want equal ones", hashes)
			}
		})
	}
}
