// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/fixture"
)

// Each reference of a template and its catalogs is found once, and so are all kinds whose objects decide what
// the template may refer to.
func TestReferences(t *testing.T) {
	const group = "infrastructure.cluster.x-k8s.io"
	infrastructure := func(kind, name string) *clusterv1.ContractVersionedObjectReference {
		return &clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: kind, Name: name}
	}
	template := fixture.Template()
	bootstrap := template.Spec.Template.Spec.Bootstrap.ConfigRef
	own := infrastructure("OwnTemplate", "own")
	template.Spec.InstanceTypes = []v1alpha1.InstanceType{{Name: "a"}, {Name: "b", InfrastructureRef: own}, {Name: "c", InfrastructureRef: own}}
	template.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: "missing"}, {Name: "shared"}}
	template.Spec.Discovery = &v1alpha1.Discovery{InfrastructureTemplates: &v1alpha1.InfrastructureTemplateDiscovery{APIGroup: group, Kind: "FoundTemplate"}}
	catalog := func(name string, types ...v1alpha1.InstanceType) client.Object {
		listed := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: name}}
		listed.Spec.InstanceTypes = types
		return listed
	}
	clusters := fixture.Clusters(
		catalog("other", v1alpha1.InstanceType{Name: "x", InfrastructureRef: infrastructure("OtherTemplate", "other")}),
		catalog("shared", v1alpha1.InstanceType{Name: "d"}, v1alpha1.InstanceType{Name: "e", InfrastructureRef: own},
			v1alpha1.InstanceType{Name: "f", InfrastructureRef: infrastructure("SharedTemplate", "shared")}),
	)
	got, err := References(t.Context(), clusters, template)
	if err != nil {
		t.Fatal(err)
	}
	want := []Reference{
		{bootstrap, "spec.template.spec.bootstrap.configRef", v1alpha1.PatchTargetBootstrap, false},
		{*infrastructure("AWSMachineTemplate", "workers"), "spec.template.spec.infrastructureRef", v1alpha1.PatchTargetInfrastructure, false},
		{*own, "spec.instanceTypes[1].infrastructureRef", v1alpha1.PatchTargetInfrastructure, false},
		{*infrastructure("SharedTemplate", "shared"), "InstanceTypeCatalog shared: spec.instanceTypes[2].infrastructureRef", v1alpha1.PatchTargetInfrastructure, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	kinds, err := kindsOf(t.Context(), clusters, template)
	if err != nil {
		t.Fatal(err)
	}
	wantKinds := []schema.GroupKind{{Group: bootstrap.APIGroup, Kind: bootstrap.Kind}}
	for _, kind := range []string{"AWSMachineTemplate", "OwnTemplate", "SharedTemplate", "FoundTemplate"} {
		wantKinds = append(wantKinds, schema.GroupKind{Group: group, Kind: kind})
	}
	if diff := cmp.Diff(wantKinds, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}
