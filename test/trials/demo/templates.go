// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack/kinds"
)

// showTemplates prints a table of the copies of the base, with the values from the patches.
func (s *story) showTemplates(ctx context.Context) error {
	list, err := kinds.Infrastructures(ctx, s.Management)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "      infrastructure\tof base\tinstance type\tregion\tspot\tcpu\tmemory")
	for _, made := range list {
		spec := &made.Spec
		_, _ = fmt.Fprintf(table, "      %s\t%s\t%s\t%s\t%t\t%s\t%s\n", made.Name,
			made.Base(), spec.InstanceType, spec.Region, spec.Spot,
			spec.Capacity.Cpu(), spec.Capacity.Memory())
	}
	return table.Flush()
}
