// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
)

// The condition counts outdated Nodes by reason. While that cannot be decided, it stays as it is.
func TestNodesCurrent(t *testing.T) {
	// It has the same offering, if the template discovers it.
	existing := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m5", Annotations: map[string]string{
		v1alpha1.AdoptableAnnotation: "true", "capacity.cluster-autoscaler.kubernetes.io/cpu": "2", "capacity.cluster-autoscaler.kubernetes.io/memory": "8Gi",
	}}}
	existing.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrastructureKind.Group, Kind: infrastructureKind.Kind, Name: "workers"}
	existing.Spec.Template.Spec.FailureDomain = "a"
	c := newCell(newTemplate(), existing)
	template, err := c.reconcile(t, "general")
	if err != nil {
		t.Fatal(err)
	}
	launch, err := generate.LaunchOf(t.Context(), c.clusters, c.catalog, template, catalog.Key{InstanceType: "m5", Zone: "a", CapacityType: "on-demand"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Annotations: launch.Annotate(nil),
			Labels: map[string]string{corev1.LabelInstanceTypeStable: "m5", corev1.LabelTopologyZone: "a", karpv1.CapacityTypeLabelKey: "on-demand"},
		}}
		claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: "general"}
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
		if err := c.Create(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name string
		edit func(*v1alpha1.KarpenterMachineTemplateSpec)
		want string // in the message; empty if the condition is True
	}{
		{"nothing", func(*v1alpha1.KarpenterMachineTemplateSpec) {}, ""},
		{"a Secret", func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.Template.Spec.Bootstrap.DataSecretName = new("other")
		},
			"2 of 2 Nodes are not what the template generates now (BootstrapDrift 2): Karpenter replaces them"},
		{"no instance type", func(s *v1alpha1.KarpenterMachineTemplateSpec) { s.CatalogRefs = nil }, "(BootstrapDrift 2): Karpenter replaces them"},
		{"an existing MachineDeployment has the offering", func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			*s = newTemplate().Spec
			s.CatalogRefs, s.Discovery = nil, &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
		}, ""},
		{"all as it was", func(s *v1alpha1.KarpenterMachineTemplateSpec) { *s = newTemplate().Spec }, ""},
	} {
		if err := c.Get(t.Context(), client.ObjectKey{Name: "general"}, template); err != nil {
			t.Fatal(err)
		}
		template.Generation++
		step.edit(&template.Spec)
		if err := c.Update(t.Context(), template); err != nil {
			t.Fatal(err)
		}
		stored, err := c.reconcile(t, "general")
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		condition := stored.StatusConditions().Get(v1alpha1.ConditionNodesCurrent)
		if condition.IsTrue() != (step.want == "") || !strings.Contains(condition.Message, step.want) {
			t.Errorf("%s: got %s %q, want %q", step.name, condition.Status, condition.Message, step.want)
		}
	}
}
