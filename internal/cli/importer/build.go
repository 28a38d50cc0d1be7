// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	"github.com/shopspring/decimal"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// The limits of the CRD.
const (
	maxTypes     = 1000
	maxOfferings = 64
	maxZones     = 32
)

// maxSize leaves room below etcd's limit of 1.5 MiB for status and managed fields.
const maxSize = 1_300_000

// build returns the catalog of an inventory.
func build(format string, found *inventory, options *Options) (*v1alpha1.InstanceTypeCatalog, error) {
	region := lo.CoalesceOrEmpty(found.region, options.Region)
	if found.region != "" && options.Region != "" && found.region != options.Region {
		return nil, fmt.Errorf("the files are of region %s, but --region is %s", found.region, options.Region)
	}
	if found.currency != "" && options.Currency != "" && found.currency != options.Currency {
		return nil, fmt.Errorf("the prices are in %s, but --currency is %s: prices are not converted", found.currency, options.Currency)
	}
	spec := v1alpha1.InstanceTypeCatalogSpec{
		Source:   strings.Join(lo.Compact([]string{strings.TrimSpace(format + " " + region), lo.CoalesceOrEmpty(options.Date, found.date)}), ", "),
		Currency: lo.CoalesceOrEmpty(found.currency, options.Currency),
		Pricing:  pricing(options),
	}
	machines := slices.Clone(found.machines)
	slices.SortStableFunc(machines, func(a, b machine) int {
		return cmp.Or(cmp.Compare(a.family(), b.family()), a.cpu.Cmp(b.cpu), cmp.Compare(a.memory, b.memory), cmp.Compare(a.name, b.name))
	})
	where := map[string]string{}
	for i := range machines {
		m := &machines[i]
		if first, twice := where[m.name]; twice {
			return nil, fmt.Errorf("%s: it is already described at %s", m.where, first)
		}
		where[m.name] = m.where
		if err := m.check(); err != nil {
			return nil, err
		}
		if !options.accepts(m) {
			continue
		}
		if len(m.offers) == 0 {
			found.skipped.add("without an on-demand price in one of the chosen zones", m.name)
			continue
		}
		spec.InstanceTypes = append(spec.InstanceTypes, instanceTypeOf(m, region, options))
	}
	if len(spec.InstanceTypes) == 0 {
		return nil, errors.Join(fmt.Errorf("no instance type is left of %d: change the filters or the files", len(machines)),
			errors.Join(lo.Map(found.skipped.lines(), func(line string, _ int) error { return errors.New(line) })...))
	}
	hoist(&spec)
	result := &v1alpha1.InstanceTypeCatalog{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.CatalogKind},
		ObjectMeta: metav1.ObjectMeta{Name: lo.CoalesceOrEmpty(options.Name, strings.ToLower(strings.Join(lo.Compact([]string{format, region}), "-")))},
		Spec:       spec,
	}
	return result, check(result, where)
}

// pricing returns the prices that the catalog computes; nil if there are none.
func pricing(options *Options) *v1alpha1.CatalogPricing {
	if !options.computesPrices() && options.SpotFactor == nil {
		return nil
	}
	text := func(price *decimal.Decimal) v1alpha1.Decimal {
		return v1alpha1.Decimal(lo.TernaryF(price == nil, func() string { return "" }, func() string { return price.String() }))
	}
	p := &v1alpha1.CatalogPricing{Pricing: v1alpha1.Pricing{CPU: text(options.CPU), Memory: text(options.Memory), GPU: text(options.GPU)}}
	if options.SpotFactor != nil {
		p.Factors = []v1alpha1.PriceFactor{{CapacityType: karpv1.CapacityTypeSpot, Factor: text(options.SpotFactor)}}
	}
	return p
}

// instanceTypeOf returns the entry of a machine.
func instanceTypeOf(m *machine, region string, options *Options) v1alpha1.InstanceType {
	if options.SpotFactor != nil && m.spot {
		m.addSpot(*options.SpotFactor)
	}
	capacity := maps.Clone(m.capacity)
	capacity[corev1.ResourceCPU] = m.cpu
	capacity[corev1.ResourceMemory] = *resource.NewQuantity(reported(m.memory, *options.MemoryAllowance), resource.BinarySI)
	if options.EphemeralStorage != nil {
		capacity[corev1.ResourceEphemeralStorage] = *options.EphemeralStorage
	}
	labels := lo.MapValues(m.labels, func(value, _ string) v1alpha1.LabelValue { return v1alpha1.LabelValue(value) })
	labels[v1alpha1.InstanceMemoryLabel] = v1alpha1.LabelValue(strconv.FormatInt(m.memory/mebibyte, 10))
	labels[corev1.LabelArchStable] = v1alpha1.LabelValue(m.architecture)
	if region != "" {
		labels[corev1.LabelTopologyRegion] = v1alpha1.LabelValue(region)
	}
	price, offerings := compact(m.offers)
	return v1alpha1.InstanceType{Name: m.name, Capacity: capacity, Labels: labels, VolumeAttachmentLimits: m.volumes, Price: price, Offerings: offerings}
}

// reported returns the memory that a Node reports, in whole MiB.
func reported(sold int64, allowance decimal.Decimal) int64 {
	hundred := decimal.NewFromInt(100)
	share := hundred.Sub(allowance).Div(hundred)
	return decimal.NewFromInt(sold/mebibyte).Mul(share).Floor().IntPart() * mebibyte
}

// check returns an error if the API server or the operator would not accept all of a catalog.
func check(c *v1alpha1.InstanceTypeCatalog, where map[string]string) error {
	if problems := validation.IsDNS1123Subdomain(c.Name); len(problems) > 0 {
		return fmt.Errorf("the name %q of the catalog is invalid: set --name: %s", c.Name, strings.Join(problems, "; "))
	}
	if n := len(c.Spec.InstanceTypes); n > maxTypes {
		return fmt.Errorf("there are %d instance types, and a catalog has at most %d: choose some with --family, --size, --architecture or --zone, or make several catalogs", n, maxTypes)
	}
	if err := checkOfferings(c.Spec.Offerings); err != nil {
		return err
	}
	var errs []error
	for i := range c.Spec.InstanceTypes {
		if err := checkType(&c.Spec.InstanceTypes[i]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", where[c.Spec.InstanceTypes[i].Name], err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if content, err := json.Marshal(c); err != nil || len(content) > maxSize {
		return errors.Join(err, fmt.Errorf("the catalog has %d bytes, and etcd stores at most 1.5 MiB: choose some instance types with --family, --size, --architecture or --zone, or make several catalogs", len(content)))
	}
	return errors.Join(catalog.Check(&c.Spec).Problems...)
}

func checkType(it *v1alpha1.InstanceType) error {
	if problems := validation.IsValidLabelValue(it.Name); len(problems) > 0 {
		return fmt.Errorf("the name %q cannot be a label of Nodes: rename it, or leave it out with a filter: %s", it.Name, strings.Join(problems, "; "))
	}
	for _, key := range slices.Sorted(maps.Keys(it.Labels)) {
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(string(it.Labels[key]))...); len(problems) > 0 {
			return fmt.Errorf("label %s=%q is invalid: %s", key, it.Labels[key], strings.Join(problems, "; "))
		}
	}
	return checkOfferings(it.Offerings)
}

func checkOfferings(offerings []v1alpha1.Offering) error {
	if len(offerings) > maxOfferings {
		return fmt.Errorf("it has %d offerings, expected at most %d: choose zones with --zone", len(offerings), maxOfferings)
	}
	for _, o := range offerings {
		if len(o.Zones) > maxZones {
			return fmt.Errorf("it has %d zones, expected at most %d: choose zones with --zone", len(o.Zones), maxZones)
		}
		for _, zone := range o.Zones {
			if problems := validation.IsValidLabelValue(string(zone)); len(problems) > 0 {
				return fmt.Errorf("zone %q cannot be a label of Nodes: %s", zone, strings.Join(problems, "; "))
			}
		}
	}
	return nil
}
