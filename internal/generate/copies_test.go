// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Patches that give each offering another large template cost no more memory than one template may use. What does not fit
// is reported for its offerings, and the others can be launched.
func TestCopiesHaveALimit(t *testing.T) {
	template := fixture.Template()
	listed := fixture.Catalog()
	given := listed.Spec.InstanceTypes[0]
	given.Offerings = []v1alpha1.Offering{{CapacityType: "on-demand", Price: "1"}}
	listed.Spec.InstanceTypes = nil
	for i := range 1000 {
		given.Name = fmt.Sprintf("type-%d", i)
		listed.Spec.InstanceTypes = append(listed.Spec.InstanceTypes, given)
	}
	// A part of the base template, which each copy has, too.
	template.Spec.Patches = []v1alpha1.Patch{fixture.Patch("/spec/template/spec/instanceType", "{{ .instanceType }}")}
	infrastructure := fixture.Infrastructure()
	infrastructure.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["userData"] = strings.Repeat("x", 200<<10)
	generator, err := NewGenerator(fixture.Served, template, Bases{Infrastructure: infrastructure, Bootstrap: fixture.Bootstrap()})
	if err != nil {
		t.Fatal(err)
	}
	types, problems := catalog.TypesOf(template, nil, listed)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	fail := 0
	for i := range types {
		_, err := generator.Generate(&types[i], &types[i].Offerings[0])
		if err == nil {
			continue
		}
		fail++
		if want := "KarpenterMachineTemplate general: patches generate more than 64 MiB of different templates from "; !strings.HasPrefix(err.Error(), want) {
			t.Fatalf("got %v, want %q", err, want)
		}
	}
	if accepted := len(types) - fail; accepted != (64<<20)/(200<<10) && accepted != (64<<20)/(200<<10)-1 {
		t.Errorf("%d offerings have room", accepted)
	}
	if _, err := generator.Generate(&types[0], &types[0].Offerings[0]); err != nil {
		t.Errorf("what was generated before: got %v", err)
	}
	runtime.KeepAlive(generator)
}
