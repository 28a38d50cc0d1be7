// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/version"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// What Read finds depends on how much of the control plane exists. None of it is an error.
func TestRead(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "TestControlPlane"}
	crd := func(label string) client.Object {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName("testcontrolplanes.controlplane.cluster.x-k8s.io")
		crd.SetLabels(map[string]string{label: kind.Version})
		return crd
	}
	cluster := func(ref clusterv1.ContractVersionedObjectReference) client.Object {
		return &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name},
			Spec:       clusterv1.ClusterSpec{ControlPlaneRef: ref, Topology: clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: "v1.37.0"}},
		}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"version": "v1.36.3"}, "status": map[string]any{"version": "v1.36.2"}}}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(fixture.Served.Namespace)
	object.SetName("cp")
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: "cp"}
	usable := crd(clusterv1.GroupVersion.String())
	for name, tc := range map[string]struct {
		objects []client.Object
		want    version.ControlPlane
	}{
		"no Cluster": {},
		"a Cluster without a control plane": {
			objects: []client.Object{cluster(clusterv1.ContractVersionedObjectReference{})},
			want:    version.ControlPlane{Topology: "v1.37.0"},
		},
		"a kind that does not exist": {
			objects: []client.Object{cluster(ref)},
			want:    version.ControlPlane{Topology: "v1.37.0"},
		},
		"a kind of no contract": {
			objects: []client.Object{cluster(ref), crd("example.com/other"), object},
			want:    version.ControlPlane{Topology: "v1.37.0"},
		},
		"a control plane that does not exist": {
			objects: []client.Object{cluster(ref), usable},
			want:    version.ControlPlane{Kind: kind, Topology: "v1.37.0"},
		},
		"a control plane": {
			objects: []client.Object{cluster(ref), usable, object},
			want:    version.ControlPlane{Kind: kind, Name: "TestControlPlane cp", Version: "v1.36.3", Running: []string{"v1.36.2"}, Topology: "v1.37.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := version.Read(t.Context(), fixture.Clusters(tc.objects...), fixture.Template())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
