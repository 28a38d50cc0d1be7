// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

const skipChecks = clusterv1.MachineSetSkipPreflightChecksAnnotation

func TestAnnotated(t *testing.T) {
	const record = v1alpha1.TemplateAnnotationsAnnotation
	type annotations = map[string]string
	for name, tc := range map[string]struct{ current, wanted, want annotations }{
		"nothing": {},
		"none wanted: others stay": {
			current: annotations{"other": "1"},
			want:    annotations{"other": "1"},
		},
		"added": {
			current: annotations{"other": "1"}, wanted: annotations{"b": "2", "a": "1"},
			want: annotations{"other": "1", "a": "1", "b": "2", record: "a,b"},
		},
		"changed": {
			current: annotations{"a": "1", record: "a"}, wanted: annotations{"a": "2"},
			want: annotations{"a": "2", record: "a"},
		},
		"removed: others stay": {
			current: annotations{"a": "1", "b": "2", "other": "1", record: "a,b"}, wanted: annotations{"b": "2"},
			want: annotations{"b": "2", "other": "1", record: "b"},
		},
		"all removed": {
			current: annotations{"a": "1", record: "a"},
			want:    annotations{},
		},
		"edited by a user: set again": {
			current: annotations{"a": "edited", record: "a"}, wanted: annotations{"a": "1"},
			want: annotations{"a": "1", record: "a"},
		},
		"set by a user before: the template's from now on": {
			current: annotations{"a": "user"}, wanted: annotations{"a": "1"},
			want: annotations{"a": "1", record: "a"},
		},
		"nothing changes": {
			current: annotations{"a": "1", record: "a"}, wanted: annotations{"a": "1"},
			want: annotations{"a": "1", record: "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, WithTemplateAnnotations(tc.current, tc.wanted), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Annotations of the scalable resource do not shape Machines, so they do not lead to another resource.
func TestAnnotationsOfScalableResources(t *testing.T) {
	for _, kind := range []v1alpha1.ScalableResourceKind{v1alpha1.ScalableResourceKindMachineDeployment, v1alpha1.ScalableResourceKindMachinePool} {
		t.Run(string(kind), func(t *testing.T) {
			before := fixture.Template()
			before.Spec.ScalableResource.Kind = kind
			after := before.DeepCopy()
			after.Spec.ScalableResource.Annotations = map[string]string{skipChecks: "All"}
			without, err := generateOf(before)
			if err != nil {
				t.Fatal(err)
			}
			with, err := generateOf(after)
			if err != nil {
				t.Fatal(err)
			}
			if with.Resource.GetName() != without.Resource.GetName() {
				t.Errorf("%s becomes %s", without.Resource.GetName(), with.Resource.GetName())
			}
			want := map[string]string{skipChecks: "All", v1alpha1.TemplateAnnotationsAnnotation: skipChecks, v1alpha1.InPlaceHashAnnotation: inPlaceHash(before)}
			if diff := cmp.Diff(want, with.Resource.GetAnnotations()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if machines := with.Resource.MachineTemplate().Annotations; machines[skipChecks] != "" {
				t.Errorf("Machines get them, too: %v", machines)
			}
		})
	}
}

func generateOf(template *v1alpha1.KarpenterMachineTemplate) (*Generated, error) {
	if scalable.KindOf(template.Spec.ScalableResource).Name() == v1alpha1.ScalableResourceKindMachinePool {
		template.Spec.Template.Spec.InfrastructureRef.Kind = "AWSManagedMachinePoolTemplate"
	}
	return generate(template, fixture.Spot)
}

// A copy has the annotations of its base that Cluster API reads from templates. They do not
// change its name.
func TestCopiesKeepWhatClusterAPIReads(t *testing.T) {
	copyWith := func(annotations map[string]string) (name string, got map[string]string) {
		t.Helper()
		base := fixture.Infrastructure()
		base.SetAnnotations(annotations)
		generator, err := NewGenerator(fixture.Served, fixture.TemplateWithPatches(), Bases{Infrastructure: base})
		if err != nil {
			t.Fatal(err)
		}
		object := generator.copyOf(base, map[string]any{"x": "y"})
		return object.GetName(), object.GetAnnotations()
	}
	plain, before := copyWith(nil)
	annotated, after := copyWith(map[string]string{skipChecks: "All", "kubectl.kubernetes.io/last-applied-configuration": "{}"})
	if plain != annotated {
		t.Errorf("%s becomes %s", plain, annotated)
	}
	before[skipChecks] = "All"
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Only a template that was cloned from one of its own kind is a copy. Pools are generated from templates and other pools,
// and providers clone the objects of Machines from templates.
func TestBaseOf(t *testing.T) {
	const group = ".infrastructure.cluster.x-k8s.io"
	for name, tc := range map[string]struct{ kind, from, want string }{
		"a copy":                       {kind: "AWSMachineTemplate", from: "AWSMachineTemplate" + group, want: "workers"},
		"a base":                       {kind: "AWSMachineTemplate"},
		"a template of another kind":   {kind: "AWSMachineTemplate", from: "OtherMachineTemplate" + group},
		"the object of a Machine":      {kind: "AWSMachine", from: "AWSMachineTemplate" + group},
		"a pool from a pool":           {kind: "AzureMachinePool", from: "AzureMachinePool" + group},
		"a pool from a template of it": {kind: "DockerMachinePool", from: "DockerMachinePoolTemplate" + group},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.Infrastructure()
			object.SetKind(tc.kind)
			if tc.from != "" {
				object.SetAnnotations(map[string]string{clusterv1.TemplateClonedFromNameAnnotation: "workers", clusterv1.TemplateClonedFromGroupKindAnnotation: tc.from})
			}
			if got := BaseOf(object); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
