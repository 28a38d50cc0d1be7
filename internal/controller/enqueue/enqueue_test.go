// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

func TestClusterChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*clusterv1.Cluster)
		want   bool
	}{
		"a pause":                      {change: func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) }, want: true},
		"its deletion":                 {change: func(c *clusterv1.Cluster) { c.DeletionTimestamp = new(metav1.Now()) }, want: true},
		"its infrastructure":           {change: func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = new(true) }, want: true},
		"its control plane":            {change: func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = new(true) }, want: true},
		"a pause that is set to false": {change: func(c *clusterv1.Cluster) { c.Spec.Paused = new(false) }},
		"a condition":                  {change: func(c *clusterv1.Cluster) { c.Status.Conditions = []metav1.Condition{{Type: "Available"}} }},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := &clusterv1.Cluster{}, &clusterv1.Cluster{}
			tc.change(after)
			for direction, e := range map[string]event.UpdateEvent{"begins": {ObjectOld: before, ObjectNew: after}, "ends": {ObjectOld: after, ObjectNew: before}} {
				if got := ClusterChanged().Update(e); got != tc.want {
					t.Errorf("when it %s: got %t, want %t", direction, got, tc.want)
				}
			}
		})
	}
	if !ClusterChanged().Create(event.CreateEvent{Object: &clusterv1.Cluster{}}) || !ClusterChanged().Delete(event.DeleteEvent{Object: &clusterv1.Cluster{}}) {
		t.Error("the event of a Cluster that is created or deleted is dropped")
	}
}

func TestTemplateChanged(t *testing.T) {
	follower := func() *v1alpha1.KarpenterMachineTemplate {
		template := &v1alpha1.KarpenterMachineTemplate{}
		template.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: "workers"}
		template.Status.From = &v1alpha1.ObservedMachineTemplate{MachineDeployment: "workers", Hash: "a"}
		return template
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KarpenterMachineTemplate)
		want   bool
	}{
		"its spec":                     {func(t *v1alpha1.KarpenterMachineTemplate) { t.Generation++ }, true},
		"its version":                  {func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.Version = "v1.36.3" }, true},
		"what it takes":                {func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.From.Hash = "b" }, true},
		"what it takes cannot be used": {func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.From = nil }, true},
		"its Machines":                 {func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.Machines++ }, false},
	} {
		t.Run(name, func(t *testing.T) {
			after := follower()
			tc.change(after)
			if got := TemplateChanged().Update(event.UpdateEvent{ObjectOld: follower(), ObjectNew: after}); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
