// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"errors"
	"testing"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestContractVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string // empty if Cluster API cannot use the kind
	}{
		"no labels":            {},
		"another label":        {labels: map[string]string{"cluster.x-k8s.io/provider": "infrastructure-aws"}},
		"one version":          {labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta1"}, want: "v1beta1"},
		"the latest version":   {labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1alpha3_v1beta10_v1beta2"}, want: "v1beta10"},
		"a stable version":     {labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta9_v1_v1alpha1"}, want: "v1"},
		"an earlier contract":  {labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1alpha4"}, want: "v1alpha4"},
		"the later contract":   {labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1", "cluster.x-k8s.io/v1beta2": "v1beta1"}, want: "v1beta1"},
		"a contract too early": {labels: map[string]string{"cluster.x-k8s.io/v1alpha4": "v1alpha4"}},
		"an empty label":       {labels: map[string]string{"cluster.x-k8s.io/v1beta2": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := contractVersion(schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "X"}, tc.labels)
			if ok != (tc.want != "") || got.Version != tc.want {
				t.Errorf("got %q and %t, want %q", got.Version, ok, tc.want)
			}
		})
	}
}

// Only kinds of providers can be referred to. Others are not even read.
func TestKindOfOthers(t *testing.T) {
	for _, group := range []string{"cluster.x-k8s.io", "addons.cluster.x-k8s.io", "karpenter.cluster.x-k8s.io", "my.infrastructure.cluster.x-k8s.io", "apps", ""} {
		ref := clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: "X", Name: "x"}
		var unusable Unusable
		if _, err := Kind(t.Context(), nil, ref.GroupKind()); !errors.As(err, &unusable) {
			t.Errorf("group %q: got error %v, want that the kind is unusable", group, err)
		}
		if _, err := Get(t.Context(), nil, ref, "default"); !errors.As(err, &unusable) {
			t.Errorf("group %q: got error %v for an object, want that the kind is unusable", group, err)
		}
	}
	for _, group := range []string{InfrastructureGroup, BootstrapGroup, ControlPlaneGroup} {
		kind, err := Kind(t.Context(), &reader{}, schema.GroupKind{Group: group, Kind: "X"})
		if err != nil || kind.Version != "v1" {
			t.Errorf("group %s: got %s and error %v, want version v1", group, kind, err)
		}
	}
}

// reader is a cache with a CustomResourceDefinition and an object of its kind.
type reader struct {
	client.Reader
	shared bool // whether the object was read without a copy
}

// Get implements client.Reader.
func (r *reader) Get(_ context.Context, _ client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if _, isObject := into.(*unstructured.Unstructured); !isObject {
		into.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1"})
		return nil
	}
	given := client.GetOptions{}
	r.shared = lo.FromPtr(given.ApplyOptions(options).UnsafeDisableDeepCopy)
	return nil
}

func TestShared(t *testing.T) {
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "X", Name: "x"}
	for name, tc := range map[string]struct {
		get  func(context.Context, client.Reader, clusterv1.ContractVersionedObjectReference, string) (*unstructured.Unstructured, error)
		want bool
	}{
		"Get copies":           {get: Get},
		"Shared does not copy": {get: Shared, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			cache := &reader{}
			object, err := tc.get(t.Context(), cache, ref, "default")
			if err != nil || object.GetName() != "x" {
				t.Fatalf("got %v and error %v, want object x", object, err)
			}
			if cache.shared != tc.want {
				t.Errorf("read without a copy: %t, want %t", cache.shared, tc.want)
			}
		})
	}
}
