// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

func TestOwnReferencesChanged(t *testing.T) {
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "workers"}}
	deployment.Spec.Template.Spec = clusterv1.MachineSpec{ClusterName: fixture.Served.Name, InfrastructureRef: clusterv1.ContractVersionedObjectReference{
		APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "SimulatedMachineTemplate", Name: "workers",
	}}
	changed := OwnReferencesChanged(fixture.Served)
	for name, tc := range map[string]struct {
		change func(*clusterv1.MachineDeployment)
		want   bool
	}{
		"replicas": {change: func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = new(int32(3)) }},
		"a label":  {change: func(d *clusterv1.MachineDeployment) { d.Labels = map[string]string{"a": "b"} }},
		"another infrastructure template": {want: true, change: func(d *clusterv1.MachineDeployment) {
			d.Spec.Template.Spec.InfrastructureRef.Name = "other"
		}},
		"a Secret": {want: true, change: func(d *clusterv1.MachineDeployment) {
			d.Spec.Template.Spec.Bootstrap.DataSecretName = new("join")
		}},
		"the label of generated ones": {want: true, change: func(d *clusterv1.MachineDeployment) {
			d.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
		}},
		"an adoption": {change: func(d *clusterv1.MachineDeployment) {
			d.Labels, d.Annotations = map[string]string{v1alpha1.TemplateLabel: "general"}, map[string]string{v1alpha1.AdoptedAnnotation: "t"}
		}},
	} {
		t.Run("an update of "+name, func(t *testing.T) {
			if got := passes(changed, deployment, tc.change); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
	generated := deployment.DeepCopy()
	generated.Labels = map[string]string{v1alpha1.TemplateLabel: "general"}
	pool := &clusterv1.MachinePool{ObjectMeta: deployment.ObjectMeta, Spec: clusterv1.MachinePoolSpec{Template: deployment.Spec.Template}}
	for name, tc := range map[string]struct {
		object client.Object
		want   bool
	}{
		"a MachineDeployment":           {object: deployment, want: true},
		"a MachinePool":                 {object: pool, want: true},
		"a generated MachineDeployment": {object: generated},
	} {
		if got := changed.Create(event.CreateEvent{Object: tc.object}); got != tc.want {
			t.Errorf("the creation of %s: got %t, want %t", name, got, tc.want)
		}
		if got := changed.Delete(event.DeleteEvent{Object: tc.object}); got != tc.want {
			t.Errorf("the deletion of %s: got %t, want %t", name, got, tc.want)
		}
	}
}
