// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kind is asked for until it is found, and then no more.
func TestMappings(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "Host"}
	served := meta.NewDefaultRESTMapper([]schema.GroupVersion{kind.GroupVersion()})
	counted := &countedMapper{RESTMapper: served}
	mapper := &mappings{RESTMapper: counted}

	if _, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); !meta.IsNoMatchError(err) {
		t.Errorf("before the kind is served: got error %v, want that there is no match", err)
	}
	served.Add(kind, meta.RESTScopeNamespace)
	for range 3 {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil || mapping.GroupVersionKind != kind || mapping.Scope != meta.RESTScopeNamespace {
			t.Fatalf("got %+v and error %v, want the mapping of %s", mapping, err, kind)
		}
	}
	if counted.calls != 2 {
		t.Errorf("got %d calls, want one that fails and one that succeeds", counted.calls)
	}
	if _, err := mapper.RESTMapping(kind.GroupKind(), "v2"); !meta.IsNoMatchError(err) {
		t.Errorf("another version: got error %v, want that there is no match", err)
	}
	if mapping, err := mapper.RESTMapping(kind.GroupKind()); err != nil || mapping.GroupVersionKind != kind {
		t.Errorf("any version: got %+v and error %v, want the mapping of %s", mapping, err, kind)
	}
}

// countedMapper counts the calls of RESTMapping.
type countedMapper struct {
	meta.RESTMapper
	calls int
}

func (m *countedMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.calls++
	return m.RESTMapper.RESTMapping(kind, versions...)
}
