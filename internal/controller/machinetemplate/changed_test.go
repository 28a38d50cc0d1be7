// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
)

// A template names the MachineDeployments that a user has changed, and offers the others, until the change is undone.
func TestChangedByHand(t *testing.T) {
	template := newTemplate()
	c := newCell(template, newCatalog("a", "b"))
	launch, err := generate.LaunchOf(t.Context(), c.clusters, catalog.New(c.clusters), template, catalog.Key{InstanceType: "m5", Zone: "a", CapacityType: "on-demand"})
	if err != nil {
		t.Fatal(err)
	}
	deployment := launch.Generated.Resource.API().(*clusterv1.MachineDeployment)
	version := deployment.Spec.Template.Spec.Version
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: "set", Labels: map[string]string{clusterv1.MachineDeploymentNameLabel: deployment.Name}}}
	set.Spec.Replicas, set.Spec.Template = new(int32(1)), *deployment.Spec.Template.DeepCopy()
	if err := c.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	deployment.Spec.Template.Spec.Version = "v1.2.3"
	if err := c.Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	got, err := c.reconcile(t, template.Name)
	if err != nil {
		t.Fatal(err)
	}
	valid := got.StatusConditions().Get(v1alpha1.ConditionOfferingsValid)
	if valid.Reason != v1alpha1.ReasonMachineDeploymentChanged || !strings.Contains(valid.Message, deployment.Name) || !strings.Contains(valid.Message, `"v1.2.3"`) {
		t.Errorf("got %+v", valid)
	}
	if !got.StatusConditions().Root().IsTrue() || got.Status.AvailableOfferings != 1 || !got.Status.ScalableResources[0].Paused {
		t.Errorf("got Ready %t with %d offerings, and %+v", got.StatusConditions().Root().IsTrue(), got.Status.AvailableOfferings, got.Status.ScalableResources)
	}

	deployment.Spec.Template.Spec.Version = version
	if err := c.Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	c.clock.Step(countsInterval)
	got, err = c.reconcile(t, template.Name)
	if err != nil || !got.StatusConditions().Get(v1alpha1.ConditionOfferingsValid).IsTrue() || got.Status.AvailableOfferings != 2 {
		t.Errorf("after the change was undone: got %v, %+v, and %d offerings", err, got.StatusConditions().Get(v1alpha1.ConditionOfferingsValid), got.Status.AvailableOfferings)
	}
}
