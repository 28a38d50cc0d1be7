// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A scalable resource is not created if an object that it refers to belongs to another Cluster or
// to a user.
func TestCreateRejectsObjectsOfOthers(t *testing.T) {
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	copied := object("infrastructure.cluster.x-k8s.io/v1", "TestMachineTemplate", "fleet", "copy", scalable.GeneratedLabels(served, "general"))
	theirs := object("infrastructure.cluster.x-k8s.io/v1", "TestMachineTemplate", "fleet", "copy", scalable.GeneratedLabels(types.NamespacedName{Namespace: "fleet", Name: "neighbour"}, "general"))
	management := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(theirs).Build()
	r := &Reconciler{clusters: &clients.Clusters{Cluster: served, Management: fixture.Cluster{Client: management}}}
	err := r.createObjects(t.Context(), []*unstructured.Unstructured{copied})
	const want = "TestMachineTemplate fleet/copy exists, but was not generated for KarpenterMachineTemplate general of Cluster fleet/served"
	if err == nil || !strings.Contains(err.Error(), want) || !isRejection(err) {
		t.Errorf("got %v, want a rejection that contains %q", err, want)
	}
}
