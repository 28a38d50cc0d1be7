// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

func TestCopies(t *testing.T) {
	template := fixture.TemplateWithPatches()
	elsewhere := func(it *v1alpha1.InstanceType) {
		it.Offerings = append(it.Offerings, v1alpha1.Offering{Zones: []v1alpha1.Zone{"us-east-1b"}, CapacityType: "spot", Price: "1"})
	}
	spot, err := generate(template, fixture.Spot)
	if err != nil {
		t.Fatal(err)
	}
	if len(spot.Objects) != 1 {
		t.Fatalf("got %d copies, want that of the infrastructure only", len(spot.Objects))
	}
	got := spot.Objects[0]
	want := map[string]any{
		"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachineTemplate",
		"metadata": map[string]any{
			"namespace": "clusters", "name": got.GetName(),
			"labels":      map[string]any{clusterv1.ClusterNameLabel: "prod", v1alpha1.TemplateLabel: "general", v1alpha1.TemplateHashLabel: got.GetLabels()[v1alpha1.TemplateHashLabel]},
			"annotations": map[string]any{"cluster.x-k8s.io/cloned-from-name": "workers", "cluster.x-k8s.io/cloned-from-groupkind": "AWSMachineTemplate.infrastructure.cluster.x-k8s.io"},
		},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"instanceType": "m5.large", "spotMarketOptions": map[string]any{}}}},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if ref := spot.Resource.References()[0]; ref.Name != got.GetName() || ref.Kind != "AWSMachineTemplate" {
		t.Errorf("the MachineDeployment refers to %+v", ref)
	}

	onDemand, err := generate(template, catalog.Key{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "on-demand"})
	if err != nil {
		t.Fatal(err)
	}
	if onDemand.Objects[0].GetName() == got.GetName() {
		t.Error("templates of different content have one name")
	}
	other, err := generate(template, catalog.Key{InstanceType: "m5.large", Zone: "us-east-1b", CapacityType: "spot"}, elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	if other.Objects[0].GetName() != got.GetName() {
		t.Error("templates of equal content are not shared")
	}
	if other.Resource.GetName() == spot.Resource.GetName() {
		t.Error("two zones have one MachineDeployment")
	}
}

// An edited base leads to other resources, whether it is copied or not.
func TestBaseChanges(t *testing.T) {
	for name, template := range map[string]*v1alpha1.KarpenterMachineTemplate{"without patches": fixture.Template(), "patched": fixture.TemplateWithPatches()} {
		t.Run(name, func(t *testing.T) {
			bases := Bases{Infrastructure: fixture.Infrastructure()}
			names := func() string {
				generator, err := NewGenerator(fixture.Served, template, bases)
				if err != nil {
					t.Fatal(err)
				}
				types := typesOf(template)
				generated, err := generator.Generate(&types[0], types[0].Find(fixture.Spot.Zone, fixture.Spot.CapacityType))
				if err != nil {
					t.Fatal(err)
				}
				return generated.Resource.GetName()
			}
			before := names()
			bases.Infrastructure.SetResourceVersion("8")
			bases.Infrastructure.SetLabels(map[string]string{"x": "y"})
			if after := names(); after != before {
				t.Errorf("a label of the base changed %s to %s", before, after)
			}
			if err := unstructured.SetNestedField(bases.Infrastructure.Object, "ami-2", "spec", "template", "spec", "ami"); err != nil {
				t.Fatal(err)
			}
			if after := names(); after == before {
				t.Error("another spec of the base led to the same resource")
			}
		})
	}
}

// ofOwnInfrastructure gives an instance type an infrastructure template of its own.
func ofOwnInfrastructure(it *v1alpha1.InstanceType) {
	it.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachineTemplate", Name: "own"}
}

func TestOwnInfrastructureIsNotPatched(t *testing.T) {
	template := fixture.TemplateWithPatches()
	generated, err := generate(template, fixture.Spot, ofOwnInfrastructure)
	if err != nil {
		t.Fatal(err)
	}
	if len(generated.Objects) != 0 || generated.Resource.References()[0].Name != "own" {
		t.Errorf("got %d copies and %+v", len(generated.Objects), generated.Resource.References()[0])
	}
}

func TestNoInfrastructure(t *testing.T) {
	template := fixture.Template()
	template.Spec.Template.Spec.InfrastructureRef = nil
	generator, err := NewGenerator(fixture.Served, template, Bases{Bootstrap: fixture.Bootstrap()})
	if err != nil {
		t.Fatal(err)
	}
	types := typesOf(fixture.Template())
	want := "KarpenterMachineTemplate general: instance type m5.large has no infrastructureRef"
	if _, err := generator.Generate(&types[0], &types[0].Offerings[0]); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// Patches can use all that is known of the offering, the Cluster and the template.
func TestVariables(t *testing.T) {
	template := fixture.Template()
	template.Spec.FailureDomains = []v1alpha1.ZoneFailureDomain{{Zone: "us-east-1a", FailureDomain: "1"}}
	describe := func(it *v1alpha1.InstanceType) {
		it.Labels = map[string]v1alpha1.LabelValue{
			corev1.LabelTopologyRegion: "us-east-1", corev1.LabelArchStable: "arm64", corev1.LabelOSStable: "windows", "example.com/family": "m5",
		}
		it.Capacity["pods"] = resource.MustParse("29")
	}
	template.Spec.Kubelet = &v1alpha1.KubeletConfiguration{KubeReserved: quantities("cpu", "80m")}
	for text, want := range map[string]string{
		".instanceType": "m5.large", ".zone": "us-east-1a", ".failureDomain": "1", ".capacityType": "spot", ".region": "us-east-1", ".architecture": "arm64",
		".operatingSystem": "windows", `index .labels "example.com/family"`: "m5", ".maxPods": "29", ".kubeReserved.cpu": "80m", ".clusterName": "prod",
		".kubernetesVersion": "v1.36.3", ".templateName": "general",
	} {
		template.Spec.Patches = []v1alpha1.Patch{fixture.Patch("/spec/template/spec/x", "is {{ "+text+" }}")}
		generated := generateFrom(t, template, Bases{Infrastructure: fixture.Infrastructure(), Bootstrap: fixture.Bootstrap()}, fixture.Spot, describe)
		if got, _, _ := unstructured.NestedString(generated.Objects[0].Object, "spec", "template", "spec", "x"); got != "is "+want {
			t.Errorf("%s: got %q, want %q", text, got, "is "+want)
		}
	}
}

func TestPatchesFailForOneOffering(t *testing.T) {
	template := fixture.TemplateWithPatches()
	template.Spec.Patches[1].JSONPatches[0].Path = "/spec/template/spec/none/spotMarketOptions"
	if _, err := generate(template, fixture.Spot); err == nil || !strings.Contains(err.Error(), "KarpenterMachineTemplate general: spec.patches[1].jsonPatches[0] (add /spec/template/spec/none/spotMarketOptions) cannot be applied to the base template") {
		t.Errorf("got %v", err)
	}
	if _, err := generate(template, catalog.Key{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "on-demand"}); err != nil {
		t.Errorf("an offering for which the patch is not enabled fails, too: %v", err)
	}
}

// A template that follows a MachineDeployment gets copies of all bases, because a topology deletes its
// own. If the topology only gives them other names, the same objects are generated.
func TestFollowedBasesAreCopied(t *testing.T) {
	follow := func(base string) *Generated {
		t.Helper()
		template := fixture.Template()
		machine := &template.Spec.Template
		machine.From = &v1alpha1.MachineTemplateSource{MachineDeploymentTopology: "md-0"}
		machine.Spec.Bootstrap.ConfigRef.Name, machine.Spec.InfrastructureRef.Name = base, base
		template.Status.From = &v1alpha1.ObservedMachineTemplate{MachineDeployment: "prod-md-0-x7k2p", Hash: base}
		generated, err := generate(template, fixture.Spot)
		if err != nil {
			t.Fatal(err)
		}
		return generated
	}
	before, after := follow("prod-md-0-a"), follow("prod-md-0-b")
	if len(before.Objects) != 2 {
		t.Fatalf("got %d copies, want that of the infrastructure and that of the bootstrap", len(before.Objects))
	}
	for _, ref := range before.Resource.References() {
		if !strings.HasPrefix(ref.Name, "general-prod-md-0-x7k2p-") {
			t.Errorf("the MachineDeployment refers to %s %s, want a copy", ref.Kind, ref.Name)
		}
	}
	if before.Resource.GetName() != after.Resource.GetName() || before.Hashes != after.Hashes {
		t.Errorf("got %s with %v and %s with %v, want the same", before.Resource.GetName(), before.Hashes, after.Resource.GetName(), after.Hashes)
	}
}
