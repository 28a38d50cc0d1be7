// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// showResources prints a table of what was generated: one scalable resource for each offering in use, with its
// infrastructure template, which others can share, or its own machine pool. All must be of the requested kind.
func (s *story) showResources(ctx context.Context) error {
	resources, err := kinds.Resources(ctx, s.Management)
	if err != nil {
		return err
	}
	s.progress.done(s.now.String())
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "      %s\tinstance type\tzone\tcapacity type\tmachines\tinfrastructure\n", s.kind)
	for _, r := range resources {
		if r.Kind != s.kind {
			return fmt.Errorf("%s %s was created, but all resources should be %ss", r.Kind, r.Name, s.kind)
		}
		_, _ = fmt.Fprintf(table, "      %s\t%s\t%s\t%s\t%d\t%s\n", r.Name, r.Labels[v1alpha1.InstanceTypeLabel],
			r.Labels[v1alpha1.ZoneLabel], r.Labels[v1alpha1.CapacityTypeLabel], r.Replicas, r.Infrastructure)
	}
	return table.Flush()
}
