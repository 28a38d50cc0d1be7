// SPDX-License-Identifier: Apache-2.0

package generatedcopy

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/test/fixture"
)

// The kinds of what catalogs refer to are watched, like those of the template itself.
func TestWatchesKindsOfCatalogs(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "SharedMachineTemplate"}
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName("sharedmachinetemplates." + kind.Group)
	crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": kind.Version})
	listed := &v1alpha1.InstanceTypeCatalog{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	listed.Spec.InstanceTypes = []v1alpha1.InstanceType{{Name: "m5", InfrastructureRef: &clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: "x"}}}
	template := fixture.Template()
	template.Spec.CatalogRefs = []v1alpha1.CatalogReference{{Name: listed.Name}}

	r := NewReconciler(fixture.Clusters(crd, listed), nil, clocktesting.NewFakeClock(time.Now()))
	r.kinds = enqueue.NewKinds(unwatched{}, nil)
	if err := r.watch(t.Context(), template, nil); err != nil {
		t.Fatal(err)
	}
	if watched := r.kinds.List(); !slices.Contains(watched, kind) {
		t.Errorf("watched kinds: got %v, want %v among them", watched, kind)
	}
}
