// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/census"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// counts is how many objects exist. Templates are those of all kinds, and what a MachinePool has instead
// of one.
type counts struct {
	census.Census
	kind      kinds.Kind
	templates int
}

func (c counts) String() string {
	return fmt.Sprintf("pods %d/%d running  claims %d  %s %d (replicas %d, templates %d)  machines %d  nodes %d",
		c.Running, c.Pods, c.Claims, c.kind.Plural(), c.Resources, c.Replicas, c.templates, c.Machines, c.Nodes)
}

// count lists the objects of both clusters.
func (s *story) count(ctx context.Context) (counts, error) {
	now, err := census.Of(ctx, s.Workload, s.Management, client.MatchingLabels{"demo": "true"})
	templates, templatesErr := kinds.Infrastructures(ctx, s.Management)
	return counts{Census: now, kind: s.kind, templates: len(templates)}, errors.Join(err, templatesErr)
}

// atLeast returns the maximum of nodes, resources and templates of both counts.
func (c counts) atLeast(other counts) counts {
	c.Nodes, c.Resources, c.templates = max(c.Nodes, other.Nodes), max(c.Resources, other.Resources), max(c.templates, other.templates)
	return c
}
