// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/offers"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
)

// offeringsOptions are the flags of offerings.
type offeringsOptions struct {
	*reader
	pool, pod, file string
}

func newOfferings(from source, streams genericiooptions.IOStreams) *cobra.Command {
	o := &offeringsOptions{}
	command := &cobra.Command{
		Use:   "offerings TEMPLATE",
		Short: "Show what a template offers, at which price, and why Karpenter cannot choose the rest",
		Long: "Show the offerings of a template, those that Karpenter can choose now first, then by price per hour: how many more\n" +
			"NodeClaims their limits allow, and why the others cannot be chosen. With a Pod, it also shows which can run it. What\n" +
			"depends on other Pods, and on volumes, is not considered. If prices differ from the list prices of catalogs, LIST/H is the\n" +
			"price before adjustments. If the template has spec.spread, COMPARED/H is what Karpenter compares: offerings with the same\n" +
			"one take turns.",
		Example: "  kubectl karpenter-capi offerings general\n" +
			"  kubectl karpenter-capi offerings general --nodepool general --pod web-1 --namespace shop\n" +
			"  kubectl karpenter-capi offerings general -f pod.yaml",
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			found, err := o.list(command.Context(), args[0])
			if err != nil {
				return err
			}
			return o.print(o.streams.Out, found, func(out io.Writer) error { return printOffers(out, found) })
		},
	}
	o.reader = newReader(from, streams, command)
	command.Flags().StringVar(&o.pool, "nodepool", "", "NodePool whose requirements and taints apply")
	command.Flags().StringVar(&o.pod, "pod", "", "Pod that must be able to run")
	command.Flags().StringVarP(&o.file, "filename", "f", "", "file with a Pod that must be able to run; - for standard input")
	command.MarkFlagsMutuallyExclusive("pod", "filename")
	return command
}

func (o *offeringsOptions) list(ctx context.Context, name string) ([]offers.Offer, error) {
	v, err := o.read(ctx)
	if err != nil {
		return nil, err
	}
	template := v.Template(name)
	if template == nil {
		return nil, fmt.Errorf("%s %s does not exist", v1alpha1.Kind, name)
	}
	demand, err := o.demand(ctx, v, name)
	if err != nil {
		return nil, err
	}
	return offers.List(ctx, v, template, demand)
}

// demand returns what the offerings are for.
func (o *offeringsOptions) demand(ctx context.Context, v *view.View, template string) (demand offers.Demand, err error) {
	if o.pool != "" {
		if demand.NodePool = v.NodePool(o.pool); demand.NodePool == nil || demand.NodePool.Spec.Template.Spec.NodeClassRef.Name != template {
			return demand, fmt.Errorf("NodePool %s does not exist, or does not use %s %s", o.pool, v1alpha1.Kind, template)
		}
	}
	switch {
	case o.pod != "":
		namespace, err := o.namespace()
		if err != nil {
			return demand, err
		}
		if demand.Pod, err = v.Pod(ctx, namespace, o.pod); err != nil {
			return demand, fmt.Errorf("reading Pod %s/%s: %w", namespace, o.pod, err)
		}
	case o.file != "":
		content, err := readFile(o.file, o.streams.In)
		if err != nil {
			return demand, err
		}
		demand.Pod = &corev1.Pod{}
		if err := yaml.UnmarshalStrict(content, demand.Pod); err != nil {
			return demand, fmt.Errorf("%s: expected one Pod: %w", o.file, err)
		}
		if demand.Pod.Kind != "Pod" {
			return demand, fmt.Errorf("%s: expected a Pod, found %q", o.file, demand.Pod.Kind)
		}
	default:
		return demand, nil
	}
	pool := lo.FromPtrOr(demand.NodePool, karpv1.NodePool{})
	requirements := offers.Demand{NodePool: demand.NodePool}.Requirements()
	demand.Daemons, err = v.Daemons(ctx, requirements, append(pool.Spec.Template.Spec.Taints, pool.Spec.Template.Spec.StartupTaints...))
	return demand, err
}

func printOffers(out io.Writer, found []offers.Offer) error {
	headers := []string{"INSTANCE TYPE", "ZONE", "CAPACITY TYPE", "CPU", "MEMORY", "PRICE/H", "LEFT", "STATE"}
	list := slices.Index(headers, "PRICE/H") + 1
	adjusted := slices.ContainsFunc(found, func(o offers.Offer) bool { return o.PricePerHour != o.ListPricePerHour })
	if adjusted {
		headers = slices.Insert(headers, list, "LIST/H")
	}
	spread := slices.ContainsFunc(found, func(o offers.Offer) bool { return o.ComparedPricePerHour != nil })
	if spread {
		headers = slices.Insert(headers, list, "COMPARED/H")
	}
	rows := lo.Map(found, func(o offers.Offer, _ int) []string {
		left := "–"
		if o.Left != nil {
			left = strconv.Itoa(int(*o.Left))
		}
		state := lo.Ternary(o.Usable(), "available", "")
		for _, reason := range []offers.Reason{o.Unfit, o.Unavailable} {
			if reason != (offers.Reason{}) {
				state = string(reason.Kind) + ": " + view.OneLine(reason.Message)
				break
			}
		}
		row := []string{o.InstanceType, lo.CoalesceOrEmpty(o.Zone, "–"), o.CapacityType, o.CPU.String(), o.Memory.String(), amount(o.PricePerHour), left, state}
		if adjusted {
			row = slices.Insert(row, list, amount(o.ListPricePerHour))
		}
		if spread {
			row = slices.Insert(row, list, amount(lo.FromPtrOr(o.ComparedPricePerHour, o.PricePerHour)))
		}
		return row
	})
	if err := table(out, headers, rows); err != nil {
		return err
	}
	return printCurrency(out, view.Currencies(lo.Map(found, func(o offers.Offer, _ int) string { return o.Currency })...))
}

// printCurrency prints in which currency prices are, if that is known. Karpenter compares numbers, so several are a mistake.
func printCurrency(out io.Writer, currency string) error {
	var err error
	switch {
	case strings.Contains(currency, view.CurrencySeparator):
		_, err = fmt.Fprintf(out, "\nPrices are in several currencies (%s), which are compared as if they were one: set pricing.conversion in catalogs.\n", currency)
	case currency != "":
		_, err = fmt.Fprintf(out, "\nPrices are in %s.\n", currency)
	}
	return err
}
