// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// fixedTemplate has a value for each part of a template that hashes are of.
const fixedTemplate = `
metadata: {name: general}
spec:
  template:
    metadata: {labels: {team: platform}, annotations: {note: hello}}
    spec:
      version: v1.36.3
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: OtherConfigTemplate, name: workers}}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSMachineTemplate, name: workers}
      minReadySeconds: 30
      readinessGates: [{conditionType: StorageReady}]
      deletion: {nodeDeletionTimeoutSeconds: 60}
  kubelet: {maxPods: 58, systemReserved: {cpu: 100m}}
  patches:
  - target: Infrastructure
    jsonPatches: [{op: replace, path: /spec/template/spec/instanceType, valueFrom: {template: "{{ .instanceType }}"}}]
`

// Clusters have these hashes stored. If this test fails, the operator computes the same content in another way: find out what
// has changed, and restore it. If that must not be, change the version of the subject in package hash, and describe in
// CHANGELOG.md what follows (docs/design/hashes.md).
func TestHashesOfAFixedTemplate(t *testing.T) {
	fixedType := catalog.Type{Name: "m5.large", Capacity: fixture.Catalog().Spec.InstanceTypes[0].Capacity}
	offering := catalog.Offering{Zone: "us-east-1a", FailureDomain: "us-east-1a", CapacityType: "spot"}
	generate := func(kind v1alpha1.ScalableResourceKind, infrastructure *unstructured.Unstructured) *Generated {
		template := &v1alpha1.KarpenterMachineTemplate{}
		if err := yaml.UnmarshalStrict([]byte(fixedTemplate), template); err != nil {
			t.Fatal(err)
		}
		template.Spec.ScalableResource.Kind = kind
		template.Spec.Template.Spec.InfrastructureRef.Kind = infrastructure.GetKind()
		generator, err := NewGenerator(fixture.Served, template, Bases{Infrastructure: infrastructure, Bootstrap: fixture.Bootstrap()})
		if err != nil {
			t.Fatal(err)
		}
		generated, err := generator.Generate(&fixedType, &offering)
		if err != nil {
			t.Fatal(err)
		}
		return generated
	}
	for name, tc := range map[string]struct {
		generated *Generated
		want      string
	}{
		"MachineDeployment": {generate("MachineDeployment", fixture.Infrastructure()), `
name general-m5-large-us-east-1a-spot-826bb5b9e6cc
label v1-826bb5b9e6cc60bba779ff4842fc6a38
in place v1-87c84d496ea22fc3e00f2862d8a79dbd
accepted v1-6734e4bc35d1c443371c642942abd135
machine hashes bootstrap=v1beta2/v1-27a7d725e093fbe0dbf3709f33e539fd,infrastructure=v1beta2/v1-d6f806098057b27f2ea48ee3723fefa0,kubelet=v1-60df6bb35a929dc3d957e4b35140931f,version=v1.36.3
copy general-workers-9c41e644766f v1-9c41e644766f7c4e3e762edb9c1f6988 v1-a4f33656b1244f01655799698e22a61c
`},
		"MachinePool": {generate("MachinePool", fixture.Base(t, "AWSMachinePool", `{instanceType: none, template: {spec: {instanceType: none}}}`)), `
name general-m5-large-us-east-1a-spot-60d526b6fa50
label v1-60d526b6fa5096d62911722cf391187f
in place v1-87c84d496ea22fc3e00f2862d8a79dbd
accepted v1-3ca3139b28c25835d9dff1a7afa3367d
machine hashes bootstrap=v1beta2/v1-27a7d725e093fbe0dbf3709f33e539fd,infrastructure=v1beta2/v1-4e2bf64bc8376919f8a7fb1012e60d78,kubelet=v1-60df6bb35a929dc3d957e4b35140931f,version=v1.36.3
copy general-m5-large-us-east-1a-spot-60d526b6fa50 v1-60d526b6fa5096d62911722cf391187f v1-d391a32de0826f8fc18e65f464f01688
copy general-m5-large-us-east-1a-spot-60d526b6fa50 v1-60d526b6fa5096d62911722cf391187f v1-bfbf8d038c1e215e820608efca65049e
`},
	} {
		t.Run(name, func(t *testing.T) {
			resource := tc.generated.Resource
			got := []string{
				"name " + resource.GetName(),
				"label " + resource.GetLabels()[v1alpha1.TemplateHashLabel],
				"in place " + resource.GetAnnotations()[v1alpha1.InPlaceHashAnnotation],
				"accepted " + resourceContentOf(resource),
				"machine hashes " + tc.generated.Hashes.String(),
			}
			for _, object := range tc.generated.Objects {
				got = append(got, "copy "+object.GetName()+" "+object.GetLabels()[v1alpha1.TemplateHashLabel]+" "+ContentOf(object))
			}
			if diff := cmp.Diff(strings.Split(strings.TrimSpace(tc.want), "\n"), got); diff != "" {
				t.Errorf("(-want +got):\n%s\nin full:\n%s", diff, strings.Join(got, "\n"))
			}
		})
	}
}
