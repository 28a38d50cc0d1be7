// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mappings remembers which resource each kind has. A cache that has only objects of one namespace asks that at each read
// (controller-runtime: pkg/cache/multi_namespace_cache.go), and the mapper of controller-runtime then asks those of all API groups,
// one after the other. Like that mapper, it never forgets a kind.
type mappings struct {
	meta.RESTMapper
	// known has the mapping of each kind of one version.
	known sync.Map
}

// RESTMapping implements meta.RESTMapper.
func (m *mappings) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	of := kind.WithVersion(versions[0])
	if known, found := m.known.Load(of); found {
		return known.(*meta.RESTMapping), nil
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil {
		m.known.Store(of, mapping)
	}
	return mapping, err
}
