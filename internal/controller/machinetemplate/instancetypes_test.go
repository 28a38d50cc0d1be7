// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// While the kind that discovery needs cannot be listed, the template offers its own types, and says why it has no
// others. It looks again without an event, because there may be no object of the kind. A Node whose type it may find
// is not outdated.
func TestDiscoveryOfAKindThatCannotBeListed(t *testing.T) {
	other := schema.GroupVersionKind{Group: infrastructureKind.Group, Version: "v1beta2", Kind: "OtherMachineTemplate"}
	for name, tc := range map[string]struct {
		own   bool // whether the template has types of its own
		ready bool
	}{
		"with types of its own":    {own: true, ready: true},
		"without types of its own": {},
	} {
		t.Run(name, func(t *testing.T) {
			crd := named(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "othermachinetemplates.infrastructure.cluster.x-k8s.io")
			crd.SetNamespace("")
			crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"})
			template := newTemplate()
			template.Spec.Discovery = &v1alpha1.Discovery{InfrastructureTemplates: &v1alpha1.InfrastructureTemplateDiscovery{APIGroup: other.Group, Kind: other.Kind}}
			if !tc.own {
				template.Spec.CatalogRefs = nil
			}
			claim := claimOf("c", "discovered", "a", "on-demand")
			claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
			c := newCell(template, crd, claim)
			c.fails = func(_ string, object any, _ string) error {
				if list, is := object.(*unstructured.UnstructuredList); is && list.GetKind() == other.Kind+"List" {
					return reference.Unlisted{Kind: other.GroupKind()}
				}
				return nil
			}
			if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}}); err != nil {
				t.Fatal(err)
			}
			result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}})
			if err != nil || result.RequeueAfter != discoverAgain {
				t.Errorf("got %v and %v, want another attempt after %s", result, err, discoverAgain)
			}
			stored := &v1alpha1.KarpenterMachineTemplate{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "general"}, stored); err != nil {
				t.Fatal(err)
			}
			conditions := stored.StatusConditions()
			if got := conditions.Get(status.ConditionReady); got.IsTrue() != tc.ready {
				t.Errorf("got %+v, want Ready: %t", got, tc.ready)
			}
			if got := conditions.Get(v1alpha1.ConditionOfferingsValid); got.Reason != v1alpha1.ReasonDiscoveryIncomplete || !strings.Contains(got.Message, "spec.discovery.infrastructureTemplates: objects of kind OtherMachineTemplate.infrastructure.cluster.x-k8s.io cannot be listed") {
				t.Errorf("got %+v", got)
			}
			if stored, err := c.reconcile(t, "general"); err != nil || stored.StatusConditions().Get(v1alpha1.ConditionOfferingsValid).Reason != v1alpha1.ReasonDiscoveryIncomplete {
				t.Errorf("got %v and %+v", err, stored.Status.Conditions)
			}
			if got := conditions.Get(v1alpha1.ConditionNodesCurrent); got.IsTrue() != tc.own || got.IsFalse() {
				t.Errorf("got %+v", got)
			}
			// Now the kind can be listed, see cell.reconcile.
			stored, err = c.reconcile(t, "general")
			if err != nil || stored.StatusConditions().Get(v1alpha1.ConditionOfferingsValid).IsFalse() {
				t.Errorf("after the kind was listed, got %v and %+v", err, stored.Status.Conditions)
			}
			if got := stored.StatusConditions().Get(v1alpha1.ConditionNodesCurrent); tc.own && (!got.IsFalse() || !strings.Contains(got.Message, "OfferingRemoved 1")) {
				t.Errorf("after the kind was listed, got %+v", got)
			}
		})
	}
}

// The template reports the taints of discovered MachineDeployments that no NodePool has.
func TestTaintsThatNoNodePoolHas(t *testing.T) {
	taint := corev1.Taint{Key: "nvidia.com/gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	existing := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "gpu", Annotations: map[string]string{
		v1alpha1.AdoptableAnnotation: "true", "capacity.cluster-autoscaler.kubernetes.io/cpu": "2", "capacity.cluster-autoscaler.kubernetes.io/memory": "4Gi",
		"capacity.cluster-autoscaler.kubernetes.io/taints": taint.ToString(),
	}}}
	existing.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrastructureKind.Group, Kind: infrastructureKind.Kind, Name: "workers"}
	template := newTemplate()
	template.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: template.Name}
	others := pool.DeepCopy()
	others.Name, others.Spec.Template.Spec.NodeClassRef.Name, others.Spec.Template.Spec.Taints = "others", "others", []corev1.Taint{taint}
	ofAnotherKind, second := others.DeepCopy(), pool.DeepCopy()
	ofAnotherKind.Name, ofAnotherKind.Spec.Template.Spec.NodeClassRef.Kind, ofAnotherKind.Spec.Template.Spec.NodeClassRef.Name = "of-another-kind", "EC2NodeClass", template.Name
	second.Name = "second"
	c := newCell(template, existing, pool, others, ofAnotherKind, second)
	valid := func() status.Condition {
		t.Helper()
		if _, err := c.reconcile(t, "general"); err != nil {
			t.Fatal(err)
		}
		stored, err := c.reconcile(t, "general")
		if err != nil || !stored.StatusConditions().Get(status.ConditionReady).IsTrue() {
			t.Errorf("got %v and %+v", err, stored.Status.Conditions)
		}
		return *stored.StatusConditions().Get(v1alpha1.ConditionOfferingsValid)
	}
	if got := valid(); got.Reason != v1alpha1.ReasonTaintsNotInNodePool || !strings.Contains(got.Message, "offering gpu/on-demand: its Nodes join with the taint nvidia.com/gpu=true:NoSchedule") || !strings.Contains(got.Message, "of NodePool pool") {
		t.Errorf("got %+v", got)
	}
	pool.Spec.Template.Spec.Taints = []corev1.Taint{taint}
	if err := c.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if got := valid(); !got.IsTrue() {
		t.Errorf("got %+v after the taint was added", got)
	}
}
