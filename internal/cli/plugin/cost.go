// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/samber/lo"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karpenter-capi/karpenter-capi/internal/cli/cost"
)

// costs is what cost prints for programs.
type costs struct {
	Rows  []cost.Row `json:"rows"`
	Total cost.Row   `json:"total"`
}

func newCost(from source, streams genericiooptions.IOStreams) *cobra.Command {
	var r *reader
	command := &cobra.Command{
		Use:   "cost [NODEPOOL]",
		Short: "Show what the Nodes of NodePools cost now, and which part of that is unused",
		Long: "Show what NodeClaims cost per hour and in a month of 730 hours, by NodePool, template, zone and capacity type. ON-DEMAND is\n" +
			"what the same Nodes would cost on demand, and UNUSED what is paid for CPU and memory that no Pod has requested: of\n" +
			"each Node, the one of both counts that is used most. Prices are those that Karpenter compares. If they differ from the list\n" +
			"prices of catalogs, LIST is what the Nodes would cost without adjustments.",
		Example: "  kubectl karpenter-capi cost\n  kubectl karpenter-capi cost general -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			v, err := r.read(command.Context())
			if err != nil {
				return err
			}
			pool := lo.FirstOrEmpty(args)
			if pool != "" && v.NodePool(pool) == nil {
				return fmt.Errorf("NodePool %s does not exist, or uses no KarpenterMachineTemplate", pool)
			}
			pods, err := v.Pods(command.Context())
			if err != nil {
				return err
			}
			found := costs{}
			found.Rows, found.Total = cost.Of(command.Context(), v, pods, pool)
			return r.print(r.streams.Out, found, func(out io.Writer) error { return printCosts(out, found) })
		},
	}
	r = newReader(from, streams, command)
	return command
}

func printCosts(out io.Writer, found costs) error {
	adjusted := slices.ContainsFunc(found.Rows, func(r cost.Row) bool { return r.PerHour != r.ListPerHour })
	row := func(r cost.Row, names ...string) []string {
		cells := append(names, strconv.Itoa(r.NodeClaims), amount(r.PerHour), money(r.PerHour*cost.HoursPerMonth), money(r.OnDemandPerHour*cost.HoursPerMonth), money(r.UnusedPerHour*cost.HoursPerMonth))
		if adjusted {
			cells = append(cells, money(r.ListPerHour*cost.HoursPerMonth))
		}
		return cells
	}
	headers := []string{"NODEPOOL", "TEMPLATE", "ZONE", "CAPACITY TYPE", "NODECLAIMS", "PRICE/H", "PRICE/MONTH", "ON-DEMAND/MONTH", "UNUSED/MONTH"}
	if adjusted {
		headers = append(headers, "LIST/MONTH")
	}
	rows := lo.Map(found.Rows, func(r cost.Row, _ int) []string {
		return row(r, lo.CoalesceOrEmpty(r.NodePool, "–"), r.Template, lo.CoalesceOrEmpty(r.Zone, "–"), r.CapacityType)
	})
	if err := table(out, headers, append(rows, row(found.Total, "total", "", "", ""))); err != nil {
		return err
	}
	if err := printCurrency(out, found.Total.Currency); err != nil {
		return err
	}
	if found.Total.Unpriced == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "\n%d NodeClaims are not in the sums: no template offers what they have any more, so their price is not known.\n", found.Total.Unpriced)
	return err
}
