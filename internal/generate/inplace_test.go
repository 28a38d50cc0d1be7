// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

// edit is an edit of a template and of its bases. The field decides which of the others it uses.
type edit struct {
	field   string
	value   int
	entries map[string]string
}

var randomEdit = rapid.Custom(func(t *rapid.T) edit {
	keys := rapid.SampledFrom([]string{"example.com/0", "example.com/1", "example.com/2"})
	return edit{
		field:   rapid.SampledFrom(slices.Sorted(maps.Keys(edits))).Draw(t, "field"),
		value:   rapid.IntRange(0, 2).Draw(t, "value"),
		entries: rapid.MapOfN(keys, rapid.SampledFrom([]string{"0", "1", "2"}), 0, 2).Draw(t, "entries"),
	}
})

// edits apply an edit of a field. Those that come later undo nothing of those that come before, except for fields that
// both set.
var edits = map[string]func(edit, *v1alpha1.KarpenterMachineTemplate, *Bases){
	"labels": func(e edit, t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
		t.Spec.Template.Metadata.Labels = lo.MapValues(e.entries, func(value, _ string) v1alpha1.LabelValue { return v1alpha1.LabelValue(value) })
	},
	"annotations": func(e edit, t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
		t.Spec.Template.Metadata.Annotations = e.entries
	},
	"annotations of the resource": func(e edit, t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
		t.Spec.ScalableResource.Annotations = e.entries
	},
	"minReadySeconds": func(e edit, t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
		t.Spec.Template.Spec.MinReadySeconds = new(int32(e.value))
	},
	"deletion": func(e edit, t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
		t.Spec.Template.Spec.Deletion = &clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: new(int32(e.value))}
	},
	"no deletion": func(_ edit, t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
		t.Spec.Template.Spec.Deletion = nil
	},
	"readiness gates": func(e edit, t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
		t.Spec.Template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: fmt.Sprintf("Gate%d", e.value)}}
	},
	"no readiness gates": func(_ edit, t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
		t.Spec.Template.Spec.ReadinessGates = nil
	},
	"version": func(e edit, t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
		t.Spec.Template.Spec.Version = fmt.Sprintf("v1.36.%d", e.value)
	},
	"kubelet": func(e edit, t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
		t.Spec.Kubelet = &v1alpha1.KubeletConfiguration{MaxPods: new(10 + int32(e.value))}
	},
	"patches": func(e edit, t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
		t.Spec.Patches = []v1alpha1.Patch{fixture.Patch("/spec/template/spec/patched", fmt.Sprint(e.value))}
	},
	"no patches": func(_ edit, t *v1alpha1.KarpenterMachineTemplate, _ *Bases) { t.Spec.Patches = nil },
	"infrastructure": func(e edit, _ *v1alpha1.KarpenterMachineTemplate, b *Bases) {
		_ = unstructured.SetNestedField(b.Infrastructure.Object, fmt.Sprint(e.value), "spec", "template", "spec", "ami")
	},
	"bootstrap": func(e edit, _ *v1alpha1.KarpenterMachineTemplate, b *Bases) {
		_ = unstructured.SetNestedField(b.Bootstrap.Object, fmt.Sprint(e.value), "spec", "template", "spec", "file")
	},
}

// What exists after any edits of a template depends only on the last state of the template: each
// edit can generate another resource, and changes all resources in place. Those of earlier states have
// what is changed in place, too.
func TestOnlyTheLastStateCounts(t *testing.T) {
	property.Check(t, 200, func(t *rapid.T) {
		template, bases := fixture.Template(), Bases{Infrastructure: fixture.Infrastructure(), Bootstrap: fixture.Bootstrap()}
		existing := map[string]*scalable.Resource{}
		var last *Generated
		for _, edit := range rapid.SliceOfN(randomEdit, 1, 12).Draw(t, "edits") {
			edits[edit.field](edit, template, &bases)
			var err error
			if last, err = tryToGenerate(template, bases, fixture.Spot); err != nil {
				t.Fatal(err)
			}
			if name := last.Resource.GetName(); existing[name] == nil {
				existing[name] = last.Resource.DeepCopy()
			}
			for _, resource := range existing {
				InPlace(resource, template)
			}
		}
		if diff := difference(last.Resource, existing[last.Resource.GetName()]); diff != "" {
			t.Fatalf("after all edits %s differs from what is generated now (-generated +edited):\n%s", last.Resource, diff)
		}
		for _, name := range slices.Sorted(maps.Keys(existing)) {
			resource := existing[name]
			again := resource.DeepCopy()
			InPlace(again, template)
			if diff := difference(resource, again); diff != "" {
				t.Fatalf("a second time changes %s (-before +after):\n%s", name, diff)
			}
			inPlace := func(r *scalable.Resource) any {
				machines := r.MachineTemplate()
				return []any{machines.Spec.MinReadySeconds, machines.Spec.ReadinessGates, machines.Spec.Deletion, machines.Annotations}
			}
			if !equality.Semantic.DeepEqual(inPlace(resource), inPlace(last.Resource)) {
				t.Fatalf("%s has other settings than the last state:\n%s", name, cmp.Diff(inPlace(last.Resource), inPlace(resource)))
			}
			// Nothing that Cluster API would roll out is ever changed.
			if resource.MachineTemplate().Labels[v1alpha1.TemplateHashLabel] != resource.GetLabels()[v1alpha1.TemplateHashLabel] {
				t.Fatalf("the Machines of %s have the hash of another resource", name)
			}
		}
	})
}

func difference(want, got *scalable.Resource) string {
	if equality.Semantic.DeepEqual(want.API(), got.API()) {
		return ""
	}
	return cmp.Diff(want.API(), got.API())
}

// What webhooks and users add stays, and causes no further write, until the template changes.
func TestInPlaceLeavesWhatOthersAdd(t *testing.T) {
	for _, kind := range []v1alpha1.ScalableResourceKind{v1alpha1.ScalableResourceKindMachineDeployment, v1alpha1.ScalableResourceKindMachinePool} {
		template := fixture.Template()
		template.Spec.ScalableResource.Kind = kind
		generated, err := generateOf(template)
		if err != nil {
			t.Fatal(err)
		}
		resource := generated.Resource
		machines := resource.MachineTemplate()
		machines.Spec.MinReadySeconds = new(int32(0)) // Cluster API's webhook of MachinePools
		machines.Labels["policy.example.com/team"] = "a"
		stored := resource.DeepCopy()
		InPlace(resource, template)
		if diff := difference(stored, resource); diff != "" {
			t.Errorf("%s (-stored +changed):\n%s", kind, diff)
		}
		template.Spec.Template.Metadata.Labels = map[string]v1alpha1.LabelValue{"team": "other"}
		InPlace(resource, template)
		if got := resource.MachineTemplate().Labels["team"]; got != "other" {
			t.Errorf("%s: after a change of the template, Machines get the label %q", kind, got)
		}
	}
}

// Machines get the settings of the template: when their resource is generated, and when the template changes.
func TestSettingsOfMachines(t *testing.T) {
	type settings struct {
		MinReadySeconds *int32
		ReadinessGates  []clusterv1.MachineReadinessGate
		Deletion        clusterv1.MachineDeletionSpec
	}
	for _, kind := range []v1alpha1.ScalableResourceKind{v1alpha1.ScalableResourceKindMachineDeployment, v1alpha1.ScalableResourceKindMachinePool} {
		t.Run(string(kind), func(t *testing.T) {
			template := fixture.Template()
			template.Spec.ScalableResource.Kind = kind
			set := func(seconds int32) settings {
				spec := &template.Spec.Template.Spec
				spec.MinReadySeconds, spec.ReadinessGates = &seconds, []clusterv1.MachineReadinessGate{{ConditionType: fmt.Sprintf("Gate%d", seconds)}}
				spec.Deletion = &clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: &seconds}
				return settings{spec.MinReadySeconds, spec.ReadinessGates, *spec.Deletion}
			}
			check := func(what string, want settings, resource *scalable.Resource) {
				t.Helper()
				spec := resource.MachineTemplate().Spec
				if diff := cmp.Diff(want, settings{spec.MinReadySeconds, spec.ReadinessGates, spec.Deletion}); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			want := set(5)
			generated, err := generateOf(template)
			if err != nil {
				t.Fatal(err)
			}
			check("generated", want, generated.Resource)
			want = set(9)
			InPlace(generated.Resource, template)
			check("changed in place", want, generated.Resource)
		})
	}
}

// The hash of the settings is recorded whenever a setting or the hash changes. A resource without a hash that has the
// settings already is not written.
func TestHashOfTheSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		hash    string // of the existing resource; none if empty
		changed bool
		want    bool
	}{
		"no hash, the same settings":      {},
		"no hash, other settings":         {changed: true, want: true},
		"another hash, the same settings": {hash: "old", want: true},
		"another hash, other settings":    {hash: "old", changed: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			template := fixture.Template()
			generated, err := generate(template, fixture.Spot)
			if err != nil {
				t.Fatal(err)
			}
			resource := generated.Resource
			resource.SetAnnotations(lo.PickBy(map[string]string{v1alpha1.InPlaceHashAnnotation: tc.hash}, func(_, hash string) bool { return hash != "" }))
			if tc.changed {
				template.Spec.Template.Metadata.Labels = map[string]v1alpha1.LabelValue{"team": "other"}
			}
			InPlace(resource, template)
			if got := resource.GetAnnotations()[v1alpha1.InPlaceHashAnnotation]; got != lo.Ternary(tc.want, inPlaceHash(template), "") {
				t.Errorf("got hash %q, want one: %t", got, tc.want)
			}
		})
	}
}
