// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// typesOf returns what a template offers with fixture.Catalog, whose instance type has changes.
func typesOf(template *v1alpha1.KarpenterMachineTemplate, changes ...func(*v1alpha1.InstanceType)) []catalog.Type {
	listed := fixture.Catalog()
	for _, change := range changes {
		change(&listed.Spec.InstanceTypes[0])
	}
	types, _ := catalog.TypesOf(template, nil, listed)
	return types
}

// generate returns the objects for an offering of a template, with the bases that it names.
func generate(template *v1alpha1.KarpenterMachineTemplate, key catalog.Key, changes ...func(*v1alpha1.InstanceType)) (*Generated, error) {
	bases := Bases{Bootstrap: fixture.Bootstrap(), ByRef: func(ref clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
		own := fixture.Infrastructure()
		own.SetName(ref.Name)
		return own, nil
	}}
	if from := template.Status.From; from != nil && template.Spec.Template.From != nil {
		bases.Followed.MachineDeployment = from.MachineDeployment
	}
	bases.Bootstrap.SetName(template.Spec.Template.Spec.Bootstrap.ConfigRef.Name)
	if ref := template.Spec.Template.Spec.InfrastructureRef; ref != nil {
		bases.Infrastructure = fixture.Infrastructure()
		bases.Infrastructure.SetName(ref.Name)
	}
	generator, err := NewGenerator(fixture.Served, template, bases)
	if err != nil {
		return nil, err
	}
	types := typesOf(template, changes...)
	for i := range types {
		if offering := types[i].Find(key.Zone, key.CapacityType); types[i].Name == key.InstanceType && offering != nil {
			return generator.Generate(&types[i], offering)
		}
	}
	return nil, catalog.NotOffered{Template: template.Name, Key: key}
}

func machineDeployment(template *v1alpha1.KarpenterMachineTemplate, offering catalog.Key, changes ...func(*v1alpha1.InstanceType)) (*clusterv1.MachineDeployment, error) {
	generated, err := generate(template, offering, changes...)
	if err != nil {
		return nil, err
	}
	return generated.Resource.API().(*clusterv1.MachineDeployment), nil
}

func TestMachineDeployment(t *testing.T) {
	got, err := machineDeployment(fixture.Template(), fixture.Spot)
	if err != nil {
		t.Fatal(err)
	}
	content := got.Labels[v1alpha1.TemplateHashLabel]
	if want := "general-m5-large-us-east-1a-spot-" + hash.InName(content); got.Name != want || got.Namespace != "clusters" {
		t.Errorf("got %s/%s, want clusters/%s", got.Namespace, got.Name, want)
	}
	if got.Spec.Replicas != nil {
		t.Errorf("got %d replicas, want none, because the caller sets them", *got.Spec.Replicas)
	}
	machine := got.Spec.Template.Spec
	if machine.FailureDomain != "us-east-1a" || machine.Version != "v1.36.3" || machine.ClusterName != "prod" ||
		machine.InfrastructureRef.Name != "workers" || machine.Bootstrap.ConfigRef.Kind != "OtherConfigTemplate" {
		t.Errorf("unexpected Machine spec: %+v", machine)
	}
	wantLabels := map[string]string{
		"team":                             "platform",
		clusterv1.ClusterNameLabel:         "prod",
		"cluster.x-k8s.io/deployment-name": got.Name,
		v1alpha1.TemplateLabel:             "general",
		v1alpha1.InstanceTypeLabel:         "m5.large",
		v1alpha1.ZoneLabel:                 "us-east-1a",
		v1alpha1.CapacityTypeLabel:         "spot",
		v1alpha1.TemplateHashLabel:         content,
	}
	if diff := cmp.Diff(wantLabels, got.Spec.Template.Labels); diff != "" {
		t.Errorf("labels of Machines (-want +got):\n%s", diff)
	}
	for key, value := range got.Spec.Selector.MatchLabels {
		if got.Spec.Template.Labels[key] != value {
			t.Errorf("the selector requires %s=%s, which the Machines lack", key, value)
		}
	}
	if got.Spec.Rollout.Strategy.Type != clusterv1.OnDeleteMachineDeploymentStrategyType {
		t.Errorf("got strategy %s, which could roll Machines", got.Spec.Rollout.Strategy.Type)
	}
	if scalable.OfferingOf(got) != fixture.Spot {
		t.Errorf("got offering %s back, want %s", scalable.OfferingOf(got), fixture.Spot)
	}
}

func TestHash(t *testing.T) {
	base, err := machineDeployment(fixture.Template(), fixture.Spot)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KarpenterMachineTemplate)
		same   bool
	}{
		"nothing":             {func(*v1alpha1.KarpenterMachineTemplate) {}, true},
		"the emptyTTLSeconds": {func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.ScalableResource.EmptyTTLSeconds = nil }, true},
		"the version":         {func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Template.Spec.Version = "v1.36.4" }, false},
		"the infrastructure":  {func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Template.Spec.InfrastructureRef.Name = "new" }, false},
		"the bootstrap":       {func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Template.Spec.Bootstrap.ConfigRef.Name = "new" }, false},
		"a label of Machines": {func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Template.Metadata.Labels["team"] = "x" }, true},
		"a timeout": {func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Spec.Template.Spec.Deletion = &clusterv1.MachineDeletionSpec{NodeDeletionTimeoutSeconds: new(int32(1))}
		}, true},
		"a readiness gate": {func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Spec.Template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "x"}}
		}, true},
		"the kubelet": {func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Spec.Kubelet = &v1alpha1.KubeletConfiguration{MaxPods: new(int32(58))}
		}, false},
		"the template's name": {func(t *v1alpha1.KarpenterMachineTemplate) { t.Name = "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := fixture.Template()
			tc.change(changed)
			got, err := machineDeployment(changed, fixture.Spot)
			if err != nil {
				t.Fatal(err)
			}
			if same := got.Name == base.Name; same != tc.same {
				t.Errorf("got name %s, before %s: want same=%t", got.Name, base.Name, tc.same)
			}
		})
	}
}

func TestNames(t *testing.T) {
	long := fixture.Template()
	long.Name = strings.Repeat("t", 63)
	rename := func(it *v1alpha1.InstanceType) { it.Name = strings.Repeat("Ä_.I", 3) } // with characters that names must not have
	keep := func(*v1alpha1.InstanceType) {}
	names := map[string]bool{}
	for template, change := range map[*v1alpha1.KarpenterMachineTemplate]func(*v1alpha1.InstanceType){fixture.Template(): keep, long: rename} {
		for _, instanceType := range typesOf(template, change) {
			for i := range instanceType.Offerings {
				resource, err := machineDeployment(template, instanceType.KeyOf(&instanceType.Offerings[i]), change)
				if err != nil {
					t.Fatal(err)
				}
				// MachineSet and Machine append a dash and five characters each.
				if problems := validation.IsDNS1123Label(resource.Name + "-abcde-abcde"); len(problems) > 0 {
					t.Errorf("%s: a Machine's name would be rejected: %v", resource.Name, problems)
				}
				if names[resource.Name] {
					t.Errorf("%s is the name of two resources", resource.Name)
				}
				names[resource.Name] = true
			}
		}
	}
}
