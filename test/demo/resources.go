// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// showResources prints a table of what was generated: one MachineDeployment for each offering that was chosen, and the
// infrastructure template that it has, maybe with others.
func (s *story) showResources(ctx context.Context) error {
	list := &clusterv1.MachineDeploymentList{}
	if err := s.Management.List(ctx, list); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b clusterv1.MachineDeployment) int { return cmp.Compare(a.Name, b.Name) })
	s.progress.done(s.now.String())
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "      MachineDeployment\tinstance type\tzone\tcapacity type\tmachines\tinfrastructure template")
	for _, md := range list.Items {
		_, _ = fmt.Fprintf(table, "      %s\t%s\t%s\t%s\t%d\t%s\n", md.Name, md.Labels[v1alpha1.InstanceTypeLabel],
			md.Labels[v1alpha1.ZoneLabel], md.Labels[v1alpha1.CapacityTypeLabel], ptr.Deref(md.Spec.Replicas, 0),
			md.Spec.Template.Spec.InfrastructureRef.Name)
	}
	return table.Flush()
}
