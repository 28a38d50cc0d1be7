// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Catalog remembers the instance types of each template. Its zero value is ready
// to use, by several goroutines at once. It holds nothing that cannot be computed
// again from the templates.
type Catalog struct {
	mu      sync.Mutex
	entries map[string]entry
}

type entry struct {
	uid           types.UID
	generation    int64
	instanceTypes []*cloudprovider.InstanceType
	err           error
}

// InstanceTypes returns the instance types of a template, as Build does. The same
// values are returned until the template's spec changes; they must not be modified.
func (c *Catalog) InstanceTypes(template *v1alpha1.KarpenterMachineTemplate) ([]*cloudprovider.InstanceType, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.entries[template.Name]
	if !ok || known.uid != template.UID || known.generation != template.Generation {
		known = entry{uid: template.UID, generation: template.Generation}
		known.instanceTypes, known.err = Build(template)
		if c.entries == nil {
			c.entries = map[string]entry{}
		}
		c.entries[template.Name] = known
	}
	return known.instanceTypes, known.err
}

// Forget drops what is remembered of a template that is gone.
func (c *Catalog) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, name)
}
