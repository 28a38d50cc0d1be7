// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"time"

	"github.com/patrickmn/go-cache"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// keptFor is how long Cache keeps the answers for a template. Each change of the template, including
// condition NodesCurrent, and of what it follows, leads to new ones at once.
const keptFor = 5 * time.Second

// Cache keeps the answers for templates for a short time. Each event of a template makes core ask about
// all its claims.
type Cache struct {
	clusters *operator.Clusters
	catalog  *catalog.Catalog
	answers  *cache.Cache
}

// NewCache returns an empty cache for the served Cluster.
func NewCache(clusters *operator.Clusters, known *catalog.Catalog) *Cache {
	return &Cache{clusters: clusters, catalog: known, answers: cache.New(keptFor, time.Minute)}
}

// Of returns the answers for a template, like the function Of.
func (c *Cache) Of(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (*Template, bool, error) {
	revision := string(template.UID) + "/" + template.ResourceVersion + "/" + template.FromHash()
	if known, found := c.answers.Get(revision); found {
		return known.(*Template), known.(*Template) != nil, nil
	}
	answers, decided, err := Of(ctx, c.clusters, c.catalog, template)
	if err == nil {
		c.answers.SetDefault(revision, answers)
	}
	return answers, decided, err
}
