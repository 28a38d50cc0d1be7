// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Catalog remembers the instance types of each template. Its zero value is ready
// to use, by several goroutines at once. It holds nothing that cannot be computed
// again from the templates.
type Catalog struct {
	mu      sync.Mutex
	entries map[string]*entry
}

type entry struct {
	uid           types.UID
	generation    int64
	instanceTypes []*cloudprovider.InstanceType
	err           error

	// closed are the offerings that open has as unavailable.
	closed []offeringKey
	open   []*cloudprovider.InstanceType
}

// InstanceTypes returns the instance types of a template, as Build does, without
// the offerings that cannot be chosen now. The same values are returned until the
// template's spec or one of these offerings changes; they must not be modified.
func (c *Catalog) InstanceTypes(template *v1alpha1.KarpenterMachineTemplate, now time.Time) ([]*cloudprovider.InstanceType, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.entries[template.Name]
	if !ok || known.uid != template.UID || known.generation != template.Generation {
		known = &entry{uid: template.UID, generation: template.Generation}
		known.instanceTypes, known.err = Build(template)
		known.open = known.instanceTypes
		if c.entries == nil {
			c.entries = map[string]*entry{}
		}
		c.entries[template.Name] = known
	}
	if keys := closed(template, now); !slices.Equal(keys, known.closed) {
		known.closed, known.open = keys, without(known.instanceTypes, keys)
	}
	return known.open, known.err
}

// Forget drops what is remembered of a template that is gone.
func (c *Catalog) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, name)
}
