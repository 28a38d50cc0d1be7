// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// While the kind that discovery needs cannot be listed, the template offers its own types, and says why it has no
// others. It looks again without an event, because there may be no object of the kind.
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
			crd := named(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "othermachinetemplates.infrastructure.test")
			crd.SetNamespace("")
			crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"})
			template := newTemplate()
			template.Spec.Discovery = &v1alpha1.Discovery{InfrastructureTemplates: &v1alpha1.InfrastructureTemplateDiscovery{APIGroup: other.Group, Kind: other.Kind}}
			if !tc.own {
				template.Spec.InstanceTypes = nil
			}
			c := newCell(template, crd)
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
			if got := conditions.Get(v1alpha1.ConditionOfferingsValid); got.Reason != v1alpha1.ReasonDiscoveryIncomplete || !strings.Contains(got.Message, "spec.discovery.infrastructureTemplates: objects of kind OtherMachineTemplate.infrastructure.test cannot be listed") {
				t.Errorf("got %+v", got)
			}
			if stored, err := c.reconcile(t, "general"); err != nil || stored.StatusConditions().Get(v1alpha1.ConditionOfferingsValid).Reason != v1alpha1.ReasonDiscoveryIncomplete {
				t.Errorf("got %v and %+v", err, stored.Status.Conditions)
			}
			// Now the kind can be listed, see cell.reconcile.
			if stored, err := c.reconcile(t, "general"); err != nil || stored.StatusConditions().Get(v1alpha1.ConditionOfferingsValid).IsFalse() {
				t.Errorf("after the kind was listed, got %v and %+v", err, stored.Status.Conditions)
			}
		})
	}
}
