// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/version"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// onDemand is an offering of fixture.Template.
var onDemand = catalog.Key{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "on-demand"}

// parts returns the names of the hashes that differ.
func parts(a, b Hashes) (differ []string) {
	for name, equal := range map[string]bool{
		"version": a.Version == b.Version, "kubelet": a.Kubelet == b.Kubelet,
		"infrastructure": a.Infrastructure == b.Infrastructure, "bootstrap": a.Bootstrap == b.Bootstrap,
	} {
		if !equal {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	return differ
}

// An edit changes only the hashes of the offerings whose Machines would differ, and of both kinds alike.
func TestHashesAreExact(t *testing.T) {
	type edit func(*v1alpha1.KarpenterMachineTemplate, *Bases)
	set := func(object *unstructured.Unstructured, value any, path ...string) {
		if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		edit           edit
		spot, onDemand []string
	}{
		"nothing": {edit: func(*v1alpha1.KarpenterMachineTemplate, *Bases) {}},
		"another catalog": {edit: func(t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
			t.Spec.CatalogRefs = append(t.Spec.CatalogRefs, v1alpha1.CatalogReference{Name: "x"})
		}},
		"labels, annotations, timeouts and readiness gates": {edit: func(t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
			t.Spec.Template.Metadata.Labels["team"] = "x"
			t.Spec.Template.Metadata.Annotations["note"] = "x"
			t.Spec.ScalableResource.Annotations = map[string]string{"x": "y"}
			t.Spec.Template.Spec.MinReadySeconds = new(int32(9))
			t.Spec.Template.Spec.Deletion = &clusterv1.MachineDeletionSpec{NodeDeletionTimeoutSeconds: new(int32(9))}
			t.Spec.Template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "x"}}
		}},
		"names, labels and versions of the bases": {edit: func(t *v1alpha1.KarpenterMachineTemplate, b *Bases) {
			for _, base := range []*unstructured.Unstructured{b.Infrastructure, b.Bootstrap} {
				base.SetName("renamed")
				base.SetLabels(map[string]string{"x": "y"})
				base.SetResourceVersion("99")
			}
			t.Spec.Template.Spec.InfrastructureRef.Name, t.Spec.Template.Spec.Bootstrap.ConfigRef.Name = "renamed", "renamed"
		}},
		"a patch for spot": {edit: func(t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
			p := fixture.Patch("/spec/template/spec/spot", "yes")
			p.EnabledIf = `{{ eq .capacityType "spot" }}`
			t.Spec.Patches = append(t.Spec.Patches, p)
		}, spot: []string{"infrastructure"}},
		"the content of the infrastructure template": {edit: func(_ *v1alpha1.KarpenterMachineTemplate, b *Bases) {
			set(b.Infrastructure, "ami-2", "spec", "template", "spec", "ami")
		}, spot: []string{"infrastructure"}, onDemand: []string{"infrastructure"}},
		"the content of the bootstrap template": {edit: func(_ *v1alpha1.KarpenterMachineTemplate, b *Bases) {
			set(b.Bootstrap, "x", "spec", "template", "spec", "y")
		}, spot: []string{"bootstrap"}, onDemand: []string{"bootstrap"}},
		"another kind of bootstrap template with the same content": {edit: func(t *v1alpha1.KarpenterMachineTemplate, b *Bases) {
			t.Spec.Template.Spec.Bootstrap.ConfigRef.Kind = "NewConfigTemplate"
			b.Bootstrap.SetKind("NewConfigTemplate")
		}, spot: []string{"bootstrap"}, onDemand: []string{"bootstrap"}},
		"the kubelet": {edit: func(t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
			t.Spec.Kubelet = &v1alpha1.KubeletConfiguration{MaxPods: new(int32(58))}
		}, spot: []string{"kubelet"}, onDemand: []string{"kubelet"}},
		"the version": {edit: func(t *v1alpha1.KarpenterMachineTemplate, _ *Bases) { t.Spec.Template.Spec.Version = "v1.36.4" },
			spot: []string{"version"}, onDemand: []string{"version"}},
		"the version of the control plane": {edit: func(t *v1alpha1.KarpenterMachineTemplate, b *Bases) {
			t.Spec.Template.Spec.Version, b.ControlPlane = "", version.ControlPlane{Name: "x", Version: "v1.36.4"}
		}, spot: []string{"version"}, onDemand: []string{"version"}},
		"the failure domain of the zone": {edit: func(t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
			t.Spec.FailureDomains = []v1alpha1.ZoneFailureDomain{{Zone: "us-east-1a", FailureDomain: "1"}}
		}, spot: []string{"infrastructure"}, onDemand: []string{"infrastructure"}},
		"what the kubelet reserves": {edit: func(t *v1alpha1.KarpenterMachineTemplate, _ *Bases) {
			t.Spec.Kubelet = &v1alpha1.KubeletConfiguration{KubeReservedFormula: v1alpha1.KubeReservedEKS}
		}, spot: []string{"kubelet"}, onDemand: []string{"kubelet"}},
	} {
		for _, kind := range []string{"AWSMachineTemplate", "AzureMachinePool"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				of := func(edit edit, key catalog.Key) Hashes {
					template, bases := fixture.Template(), Bases{Infrastructure: fixture.Infrastructure(), Bootstrap: fixture.Bootstrap()}
					if kind == "AzureMachinePool" {
						template, bases.Infrastructure = fixture.PoolTemplate(kind), fixture.Base(t, kind, `{template: {spec: {}}}`)
					}
					edit(template, &bases)
					return generateFrom(t, template, bases, key).Hashes
				}
				unchanged := func(*v1alpha1.KarpenterMachineTemplate, *Bases) {}
				if diff := cmp.Diff(tc.spot, parts(of(unchanged, fixture.Spot), of(tc.edit, fixture.Spot))); diff != "" {
					t.Errorf("spot (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.onDemand, parts(of(unchanged, onDemand), of(tc.edit, onDemand))); diff != "" {
					t.Errorf("on-demand (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Of an instance type, only what shapes its Machines counts, and not how it is sold.
func TestHashesOfAnInstanceType(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.InstanceType)
		want   []string
	}{
		"a price":           {func(it *v1alpha1.InstanceType) { it.Offerings[0].Price = "9" }, nil},
		"fewer offerings":   {func(it *v1alpha1.InstanceType) { it.Offerings = it.Offerings[:1] }, nil},
		"a limit":           {func(it *v1alpha1.InstanceType) { it.Offerings[0].MaxMachines = new(int32(1)) }, nil},
		"the memory":        {func(it *v1alpha1.InstanceType) { it.Capacity["memory"] = resource.MustParse("7Gi") }, nil},
		"the Pods":          {func(it *v1alpha1.InstanceType) { it.Capacity["pods"] = resource.MustParse("29") }, []string{"kubelet"}},
		"an infrastructure": {ofOwnInfrastructure, []string{"infrastructure"}},
	} {
		for _, kind := range []string{"AWSMachineTemplate", "AzureMachinePool"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				of := func(changes ...func(*v1alpha1.InstanceType)) *Generated {
					template, bases := fixture.Template(), Bases{Infrastructure: fixture.Infrastructure(), Bootstrap: fixture.Bootstrap()}
					own := fixture.Infrastructure()
					if kind == "AzureMachinePool" {
						template, bases.Infrastructure, own = fixture.PoolTemplate(kind), fixture.Base(t, kind, `{template: {spec: {}}}`), fixture.Base(t, kind, `{}`)
					}
					own.SetName("own")
					if err := unstructured.SetNestedField(own.Object, "own", "spec", "ami"); err != nil {
						t.Fatal(err)
					}
					bases.ByRef = func(clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) { return own, nil }
					return generateFrom(t, template, bases, fixture.Spot, changes...)
				}
				before, after := of(), of(tc.change)
				if diff := cmp.Diff(tc.want, parts(before.Hashes, after.Hashes)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if same := before.Resource.GetName() == after.Resource.GetName(); same != (tc.want == nil) {
					t.Errorf("got %s, before %s", after.Resource.GetName(), before.Resource.GetName())
				}
			})
		}
	}
}

// The content of the template that an instance type itself names counts, too.
func TestHashesOfOwnInfrastructure(t *testing.T) {
	of := func(ami string) *Generated {
		return generateFrom(t, fixture.Template(), Bases{Bootstrap: fixture.Bootstrap(), ByRef: func(ref clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
			own := fixture.Infrastructure()
			own.SetName(ref.Name)
			return own, unstructured.SetNestedField(own.Object, ami, "spec", "template", "spec", "ami")
		}}, fixture.Spot, ofOwnInfrastructure)
	}
	before, same, after := of("ami-1"), of("ami-1"), of("ami-2")
	if got := parts(before.Hashes, same.Hashes); len(got) > 0 {
		t.Errorf("the same content differs in %v", got)
	}
	if diff := cmp.Diff([]string{"infrastructure"}, parts(before.Hashes, after.Hashes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if before.Resource.GetName() == after.Resource.GetName() {
		t.Error("both contents have one MachineDeployment")
	}
}

func TestParseHashes(t *testing.T) {
	for _, hashes := range []Hashes{
		{}, {Version: "v1.36.3+k3s1"}, {Kubelet: "a", Infrastructure: "v1beta2/b", Bootstrap: "v1beta1/c"},
		{Version: "v1.36.3", Kubelet: "a", Infrastructure: "v1beta2/b", Bootstrap: "c"},
	} {
		if diff := cmp.Diff(hashes, ParseHashes(hashes.String())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", hashes, diff)
		}
	}
	if diff := cmp.Diff(Hashes{Version: "v1.36.3"}, ParseHashes("no hashes,version=v1.36.3,other=x")); diff != "" {
		t.Errorf("unknown parts (-want +got):\n%s", diff)
	}
}
