// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// keptFor is how long Cache keeps the answers for a template. Each change of the template, including
// condition NodesCurrent, and of what it follows, leads to new ones at once.
const keptFor = 5 * time.Second

// Cache keeps the answers for templates for a short time. Each event of a template makes core ask about
// all its claims.
type Cache struct {
	clusters *clients.Clusters
	catalog  *catalog.Catalog
	clock    clock.PassiveClock

	mu sync.Mutex
	// answers are by the revision of a template.
	answers map[string]answers
}

// answers are those for one revision of a template, nil if nothing can be decided for it.
type answers struct {
	of *Template
	at time.Time
}

// kept reports whether the answers are still to be used. The clock can have been set.
func (a answers) kept(now time.Time) bool {
	age := now.Sub(a.at)
	return age >= 0 && age < keptFor
}

// NewCache returns an empty cache for the served Cluster.
func NewCache(clusters *clients.Clusters, known *catalog.Catalog, clock clock.PassiveClock) *Cache {
	return &Cache{clusters: clusters, catalog: known, clock: clock, answers: map[string]answers{}}
}

// Of returns the answers for a template, like the function Of.
func (c *Cache) Of(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (*Template, bool, error) {
	revision := string(template.UID) + "/" + template.ResourceVersion + "/" + template.FromHash()
	if known, found := c.get(revision); found {
		return known, known != nil, nil
	}
	of, decided, err := Of(ctx, c.clusters, c.catalog, template)
	if err == nil {
		c.set(revision, of)
	}
	return of, decided, err
}

func (c *Cache) get(revision string) (*Template, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, found := c.answers[revision]
	return known.of, found && known.kept(c.clock.Now())
}

// set stores the answers for a revision, and removes those that are not kept any longer.
func (c *Cache) set(revision string, of *Template) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	maps.DeleteFunc(c.answers, func(_ string, known answers) bool { return !known.kept(now) })
	c.answers[revision] = answers{of: of, at: now}
}
