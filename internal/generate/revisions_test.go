// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// What shapes Machines leads to another resource, because generated resources never roll. Anything else keeps it,
// because a new resource starts without Machines.
func TestAnotherRevisionIsAnotherResource(t *testing.T) {
	type template = *v1alpha1.KarpenterMachineTemplate
	set := func(object *unstructured.Unstructured, value any, path ...string) {
		if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		edit    func(template, *Bases)
		another bool
	}{
		"nothing": {edit: func(template, *Bases) {}},
		"labels and annotations of Machines": {edit: func(t template, _ *Bases) {
			t.Spec.Template.Metadata.Labels["team"], t.Spec.Template.Metadata.Annotations["note"] = "x", "x"
		}},
		"annotations of resources": {edit: func(t template, _ *Bases) { t.Spec.ScalableResource.Annotations = map[string]string{"x": "y"} }},
		"what Cluster API changes in place": {edit: func(t template, _ *Bases) {
			t.Spec.Template.Spec.MinReadySeconds = new(int32(9))
			t.Spec.Template.Spec.Deletion = &clusterv1.MachineDeletionSpec{NodeDeletionTimeoutSeconds: new(int32(9))}
			t.Spec.Template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "x"}}
		}},
		"the version":            {edit: func(t template, _ *Bases) { t.Spec.Template.Spec.Version = "v1.36.4" }, another: true},
		"a build of the version": {edit: func(t template, _ *Bases) { t.Spec.Template.Spec.Version = "v1.36.3+k3s2" }, another: true},
		"the kubelet":            {edit: func(t template, _ *Bases) { t.Spec.Kubelet = &v1alpha1.KubeletConfiguration{MaxPods: new(int32(58))} }, another: true},
		"the failure domain": {edit: func(t template, _ *Bases) {
			t.Spec.FailureDomains = []v1alpha1.ZoneFailureDomain{{Zone: "us-east-1a", FailureDomain: "1"}}
		}, another: true},
		"the content of the infrastructure": {edit: func(_ template, b *Bases) { set(b.Infrastructure, "x", "spec", "template", "spec", "ami") }, another: true},
		"the content of the bootstrap":      {edit: func(_ template, b *Bases) { set(b.Bootstrap, "x", "spec", "template", "spec", "y") }, another: true},
		"a patch": {edit: func(t template, _ *Bases) {
			t.Spec.Patches = append(t.Spec.Patches, fixture.Patch("/spec/template/spec/disk", "x"))
		}, another: true},
		"a Secret": {edit: func(t template, b *Bases) {
			t.Spec.Template.Spec.Bootstrap, b.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("bootstrap")}, nil
		}, another: true},
	} {
		for _, kind := range []string{"AWSMachineTemplate", "AzureMachinePool"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				generated := func(edit func(template, *Bases)) *Generated {
					input, bases := fixture.Template(), Bases{Infrastructure: fixture.Infrastructure(), Bootstrap: fixture.Bootstrap()}
					if kind == "AzureMachinePool" {
						input, bases.Infrastructure = fixture.PoolTemplate(kind), fixture.Base(t, kind, `{template: {spec: {}}}`)
					}
					edit(input, &bases)
					bases.Allowed.Rules = fixture.Allowed
					return generateFrom(t, input, bases, fixture.Spot)
				}
				before, after := generated(func(template, *Bases) {}), generated(tc.edit)
				if another := before.Resource.GetName() != after.Resource.GetName(); another != tc.another {
					t.Errorf("got %s, before %s, want another one: %t", after.Resource.GetName(), before.Resource.GetName(), tc.another)
				}
				if drifts := before.Hashes != after.Hashes; drifts != tc.another {
					t.Errorf("the hashes differ: %t, and the resource is another one: %t", drifts, tc.another)
				}
			})
		}
	}
}

// If Cluster API has to choose a Machine to delete, it is the newest, which serves no NodeClaim yet, if any.
func TestTheNewestMachineIsDeletedFirst(t *testing.T) {
	got, err := machineDeployment(fixture.Template(), fixture.Spot)
	if err != nil {
		t.Fatal(err)
	}
	if got.Spec.Deletion.Order != clusterv1.NewestMachineSetDeletionOrder {
		t.Errorf("got order %s, want Newest", got.Spec.Deletion.Order)
	}
}
