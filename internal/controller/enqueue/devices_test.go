// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A driver that publishes the same again costs no reconcile, and what a Node has published stays learned.
func TestDevicesChanged(t *testing.T) {
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	if passes(DevicesChanged(), slice, func(s *resourcev1.ResourceSlice) { s.Labels = map[string]string{"a": "b"} }) {
		t.Error("a label passes, want that it does not")
	}
	if !passes(DevicesChanged(), slice, func(s *resourcev1.ResourceSlice) { s.Generation = 2 }) {
		t.Error("another spec does not pass")
	}
	if !DevicesChanged().Create(event.CreateEvent{Object: slice}) || DevicesChanged().Delete(event.DeleteEvent{Object: slice}) {
		t.Error("want that a new one passes, and no deletion")
	}
}

// A ResourceSlice concerns the template of its Node, if it is of one Node.
func TestTemplatesOfSlices(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{clients.NodeTemplateLabel: "general"}}}
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	workload := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(node, other).Build()
	templates := NewTemplates(&clients.Clusters{Workload: fixture.Cluster{Client: workload}})
	for name, tc := range map[string]struct {
		node *string
		want []string
	}{
		"of a Node":                 {new("node"), []string{"general"}},
		"of a Node of no template":  {new("other"), nil},
		"of a Node that is deleted": {new("deleted"), nil},
		"of all Nodes":              {nil, nil},
	} {
		slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{NodeName: tc.node}}
		if diff := cmp.Diff(tc.want, templates.OfSlice(t.Context(), slice), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
