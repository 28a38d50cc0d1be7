// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Before its Node registers, a claim gets the labels of its instance type, whatever values core has chosen for their
// keys, and a note if its Node has joined without the taint. Nothing else of the claim changes.
func TestRegistered(t *testing.T) {
	labels := func(keysAndValues ...string) map[string]string {
		all := map[string]string{corev1.LabelInstanceTypeStable: "small", "user": "own"}
		for i := 0; i < len(keysAndValues); i += 2 {
			all[keysAndValues[i]] = keysAndValues[i+1]
		}
		return all
	}
	noted := map[string]string{"a": "b", v1alpha1.TaintMissingAnnotation: "n"}
	kept := map[string]string{"a": "b"}
	for name, tc := range map[string]struct {
		taints      []corev1.Taint
		registered  bool // the Node has the label of registered ones
		template    string
		before      map[string]string
		labels      map[string]string
		annotations map[string]string
	}{
		"with the taint": {
			taints: []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}, karpv1.UnregisteredNoExecuteTaint}, template: "general",
			before: labels("disk", "hdd", "gpu", "a100"), labels: labels("disk", "ssd"), annotations: kept,
		},
		"without the taint": {template: "general", before: labels(), labels: labels("disk", "ssd"), annotations: noted},
		"with another taint": {
			taints: []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoExecute}}, template: "general",
			before: labels("disk", "ssd"), labels: labels("disk", "ssd"), annotations: noted,
		},
		"the Node is registered already":   {registered: true, template: "general", before: labels(), labels: labels("disk", "ssd"), annotations: kept},
		"its template no longer exists":    {template: "gone", before: labels("disk", "hdd"), labels: labels("disk", "hdd"), annotations: noted},
		"its instance type is not offered": {template: "general", before: labels("disk", "hdd", corev1.LabelInstanceTypeStable, "gone"), labels: labels("disk", "hdd", corev1.LabelInstanceTypeStable, "gone"), annotations: noted},
	} {
		t.Run(name, func(t *testing.T) {
			template, small, large := fixture.Template(), fixture.Catalog().Spec.InstanceTypes[0], fixture.Catalog().Spec.InstanceTypes[0]
			small.Name, small.Labels = "small", map[string]v1alpha1.LabelValue{"disk": "ssd"}
			large.Name, large.Labels = "large", map[string]v1alpha1.LabelValue{"disk": "hdd", "gpu": "a100"}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: "sim://n", Taints: tc.taints}}
			if tc.registered {
				node.Labels = map[string]string{karpv1.NodeRegisteredLabelKey: "true"}
			}
			claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: tc.before, Annotations: map[string]string{"a": "b"}}}
			claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Name: tc.template}
			claim.Status.ProviderID = "sim://n"
			both := fixture.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(template, fixture.CatalogOf(small, large), node).
				WithIndex(&corev1.Node{}, "spec.providerID", func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
				WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, func(o client.Object) []string {
					return []string{o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name}
				}).Build()}
			clusters := &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}
			if _, err := NewHook(clusters, catalog.New(clusters)).Registered(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.labels, claim.Labels, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.annotations, claim.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}
