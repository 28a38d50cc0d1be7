// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// With the values for it, a template and a NodePool that refers to it are created, and a removal of the release keeps
// them. Without, there are none.
func TestDefaults(t *testing.T) {
	rendered := render(t, Operator, Values{"defaults": Defaults()})
	template := the[v1alpha1.KarpenterMachineTemplate](t, rendered, "KarpenterMachineTemplate")
	pool := the[karpv1.NodePool](t, rendered, "NodePool")
	for _, object := range []interface {
		GetName() string
		GetAnnotations() map[string]string
	}{template, pool} {
		if object.GetName() != "general" || object.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%T %s has the annotations %v", object, object.GetName(), object.GetAnnotations())
		}
	}
	want := v1alpha1.KarpenterMachineTemplateSpec{MaxMachines: new(int32(100)), CatalogRefs: []v1alpha1.CatalogReference{{Name: "aws-us-east-1"}}}
	want.Template.From = &v1alpha1.MachineTemplateSource{MachineDeploymentTopology: "md-0"}
	want.Template.Metadata = v1alpha1.MachineMetadata{Labels: map[string]v1alpha1.LabelValue{"team": "platform"}}
	if diff := cmp.Diff(want, template.Spec); diff != "" {
		t.Errorf("the template (-want +got):\n%s", diff)
	}
	wantPool := karpv1.NodePoolSpec{Limits: karpv1.Limits{corev1.ResourceCPU: resource.MustParse("1000")}}
	wantPool.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}
	wantPool.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{{
		Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpv1.CapacityTypeSpot},
	}}
	if diff := cmp.Diff(wantPool, pool.Spec); diff != "" {
		t.Errorf("the NodePool (-want +got):\n%s", diff)
	}
	for _, object := range render(t, Operator, nil) {
		if kind := object.GetKind(); kind == "NodePool" || kind == v1alpha1.Kind {
			t.Errorf("without these values there is a %s", kind)
		}
	}
}
