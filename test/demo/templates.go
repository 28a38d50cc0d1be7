// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/infrastructure/api/v1alpha1"
)

// showTemplates prints a table of the copies of the base, with what the patches have put into them.
func (s *story) showTemplates(ctx context.Context) error {
	list := &infrav1.SimulatedMachineTemplateList{}
	if err := s.Management.List(ctx, list, generated); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b infrav1.SimulatedMachineTemplate) int { return cmp.Compare(a.Name, b.Name) })
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "      infrastructure template\tof base\tinstance type\tregion\tspot\tcpu\tmemory")
	for _, template := range list.Items {
		spec := &template.Spec.Template.Spec
		_, _ = fmt.Fprintf(table, "      %s\t%s\t%s\t%s\t%t\t%s\t%s\n", template.Name,
			template.Annotations[clusterv1.TemplateClonedFromNameAnnotation], spec.InstanceType, spec.Region, spec.Spot,
			spec.Capacity.Cpu(), spec.Capacity.Memory())
	}
	return table.Flush()
}
