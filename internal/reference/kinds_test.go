// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definitions is a management cluster with CustomResourceDefinitions.
type definitions struct {
	client.Reader
	items []metav1.PartialObjectMetadata
}

// List implements client.Reader.
func (d definitions) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	into, is := list.(*metav1.PartialObjectMetadataList)
	if !is || into.GroupVersionKind().Kind != CRD().Kind {
		return errors.New("only CustomResourceDefinitions are listed")
	}
	into.Items = d.items
	return nil
}

// failing is a mapper that fails for one resource.
type failing struct {
	meta.RESTMapper
	resource string
}

// KindFor implements meta.RESTMapper.
func (f failing) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	if resource.Resource == f.resource {
		return schema.GroupVersionKind{}, errors.New("discovery fails")
	}
	return f.RESTMapper.KindFor(resource)
}

// Of all kinds of a management cluster, those with templates and copies are namespaced ones of providers that
// Cluster API can use. One that cannot be determined hides no other.
func TestKinds(t *testing.T) {
	const infrastructure, bootstrap = "infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io"
	mapper := meta.NewDefaultRESTMapper(nil)
	var items []metav1.PartialObjectMetadata
	define := func(group, kind, contract string, scope meta.RESTScope) {
		gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
		if scope != nil {
			mapper.Add(gvk, scope)
		}
		item := metav1.PartialObjectMetadata{}
		item.Name = strings.ToLower(kind) + "s." + group
		if contract != "" {
			item.Labels = map[string]string{contract: "v1"}
		}
		items = append(items, item)
	}
	const contract = "cluster.x-k8s.io/v1beta2"
	define(infrastructure, "MachineTemplate", contract, meta.RESTScopeNamespace)
	define(infrastructure, "Identity", contract, meta.RESTScopeRoot)
	define(infrastructure, "Deleted", contract, nil)
	define(infrastructure, "Broken", contract, meta.RESTScopeNamespace)
	define(infrastructure, "Outdated", "", meta.RESTScopeNamespace)
	define("example.com", "Other", contract, meta.RESTScopeNamespace)
	define(bootstrap, "ConfigTemplate", contract, meta.RESTScopeNamespace)

	kinds, err := Kinds(t.Context(), definitions{items: items}, failing{mapper, "brokens"})
	if err == nil || !strings.Contains(err.Error(), "brokens."+infrastructure) || strings.Contains(err.Error(), "deleteds") {
		t.Errorf("got error %v, want one of the kind that cannot be determined", err)
	}
	want := []schema.GroupVersionKind{{Group: infrastructure, Version: "v1", Kind: "MachineTemplate"}, {Group: bootstrap, Version: "v1", Kind: "ConfigTemplate"}}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
