// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

func zonal(capacityType v1alpha1.CapacityType, price v1alpha1.Decimal, zones ...v1alpha1.Zone) v1alpha1.Offering {
	return v1alpha1.Offering{Zones: zones, CapacityType: capacityType, Price: price}
}

// TestOfferingsOfACatalog tests which offerings a type of a list has, and at which price.
func TestOfferingsOfACatalog(t *testing.T) {
	for name, tc := range map[string]struct {
		pricing  *v1alpha1.Pricing
		hardware *v1alpha1.Hardware
		power    *v1alpha1.PowerPricing
		defaults []v1alpha1.Offering
		price    v1alpha1.Decimal
		own      []v1alpha1.Offering
		want     string
		err      string
	}{
		"its own, in each zone": {own: []v1alpha1.Offering{zonal("spot", "0.1", "a", "b")}, want: "x/a/spot 0.1, x/b/spot 0.1"},
		"without zones":         {own: []v1alpha1.Offering{zonal("", "0.1")}, want: "x/on-demand 0.1"},
		"those of the list":     {defaults: []v1alpha1.Offering{zonal("spot", "0.1", "a")}, want: "x/a/spot 0.1"},
		"its own instead of those of the list": {
			defaults: []v1alpha1.Offering{zonal("spot", "0.1", "a")}, own: []v1alpha1.Offering{zonal("spot", "0.2", "b")}, want: "x/b/spot 0.2"},
		"the price of the type": {price: "0.5", own: []v1alpha1.Offering{zonal("spot", "", "a"), zonal("spot", "0.2", "b")}, want: "x/a/spot 0.5, x/b/spot 0.2"},
		"a factor applies to the price of the type only": {
			pricing: &v1alpha1.Pricing{Factors: []v1alpha1.PriceFactor{{CapacityType: "spot", Factor: "0.5"}}}, price: "0.5",
			own: []v1alpha1.Offering{zonal("spot", "", "a"), zonal("spot", "0.2", "b"), zonal("on-demand", "", "a")}, want: "x/a/spot 0.25, x/b/spot 0.2, x/a/on-demand 0.5"},
		"a computed price": {
			pricing: &v1alpha1.Pricing{CPU: "0.1", Memory: "0.01", GPU: "2", Factors: []v1alpha1.PriceFactor{{CapacityType: "spot", Factor: "0.5"}}},
			own:     []v1alpha1.Offering{zonal("on-demand", ""), zonal("spot", "")}, want: "x/on-demand 2.28, x/spot 1.14"},
		"a reservation for next to nothing": {price: "0.5", own: []v1alpha1.Offering{zonal("reserved", ""), zonal("on-demand", "")}, want: "x/reserved 5e-08, x/on-demand 0.5"},
		"the computed price of a reservation": {
			pricing: &v1alpha1.Pricing{CPU: "0.1", Factors: []v1alpha1.PriceFactor{{CapacityType: "spot", Factor: "0.5"}}}, own: []v1alpha1.Offering{zonal("reserved", "")}, want: "x/reserved 2e-08"},
		"a reservation with a price": {price: "0.5", own: []v1alpha1.Offering{zonal("reserved", "0.4")}, want: "x/reserved 0.4"},
		"a factor for reservations": {
			pricing: &v1alpha1.Pricing{Factors: []v1alpha1.PriceFactor{{CapacityType: "reserved", Factor: "0.2"}}}, price: "0.5", own: []v1alpha1.Offering{zonal("reserved", "")}, want: "x/reserved 0.1"},
		"a price per GiB": {pricing: &v1alpha1.Pricing{Memory: "0.01"}, own: []v1alpha1.Offering{zonal("", "")}, want: "x/on-demand 0.08"},
		"a price per GPU": {pricing: &v1alpha1.Pricing{GPU: "2"}, own: []v1alpha1.Offering{zonal("", "")}, want: "x/on-demand 2"},
		"free":            {price: "0", own: []v1alpha1.Offering{zonal("reserved", "")}, want: "x/reserved 0"},

		"hardware: its share of the purchase": {hardware: &v1alpha1.Hardware{PurchasePrice: "8760", DepreciationMonths: new(int32(12))}, own: []v1alpha1.Offering{zonal("", "")}, want: "x/on-demand 1"},
		"hardware: over five years":           {hardware: &v1alpha1.Hardware{PurchasePrice: "43800"}, own: []v1alpha1.Offering{zonal("", "")}, want: "x/on-demand 1"},
		"hardware: its power":                 {hardware: &v1alpha1.Hardware{Watts: new(int32(500))}, power: &v1alpha1.PowerPricing{KilowattHour: "0.3"}, own: []v1alpha1.Offering{zonal("", "")}, want: "x/on-demand 0.15"},
		"hardware: its power and cooling, and its purchase": {
			hardware: &v1alpha1.Hardware{Watts: new(int32(500)), PurchasePrice: "43800"}, power: &v1alpha1.PowerPricing{KilowattHour: "0.3", Factor: "1.5"},
			own: []v1alpha1.Offering{zonal("", "")}, want: "x/on-demand 1.225"},
		"hardware before prices that follow from the capacity, with a factor": {
			hardware: &v1alpha1.Hardware{PurchasePrice: "43800"}, pricing: &v1alpha1.Pricing{CPU: "5", Factors: []v1alpha1.PriceFactor{{CapacityType: "spot", Factor: "0.5"}}},
			own: []v1alpha1.Offering{zonal("on-demand", ""), zonal("spot", "")}, want: "x/on-demand 1, x/spot 0.5"},
		"a price before hardware":                   {price: "0.5", hardware: &v1alpha1.Hardware{PurchasePrice: "43800"}, own: []v1alpha1.Offering{zonal("", ""), zonal("spot", "0.2")}, want: "x/on-demand 0.5, x/spot 0.2"},
		"hardware that costs nothing":               {hardware: &v1alpha1.Hardware{Watts: new(int32(500))}, own: []v1alpha1.Offering{zonal("", "")}, err: "its hardware costs nothing: set hardware.purchasePrice, or hardware.watts and pricing.power"},
		"hardware with a price that is none":        {hardware: &v1alpha1.Hardware{PurchasePrice: "much"}, own: []v1alpha1.Offering{zonal("", "")}, err: `hardware.purchasePrice: price "much"`},
		"a kilowatt hour with a price that is none": {price: "1", power: &v1alpha1.PowerPricing{KilowattHour: "much"}, own: []v1alpha1.Offering{zonal("", "")}, err: `pricing.power.kilowattHour: price "much"`},

		"no offerings":            {price: "1", err: "it has no offerings: set offerings here or for all instance types of the catalog"},
		"no price":                {own: []v1alpha1.Offering{zonal("spot", "", "a", "b")}, err: "offering a,b/spot: it has no price: set price here or for the instance type, or pricing"},
		"only factors":            {pricing: &v1alpha1.Pricing{Factors: []v1alpha1.PriceFactor{{CapacityType: "spot", Factor: "0.5"}}}, own: []v1alpha1.Offering{zonal("spot", "")}, err: "it has no price"},
		"a zone twice":            {price: "1", own: []v1alpha1.Offering{zonal("spot", "", "a", "b"), zonal("spot", "", "b")}, err: "offering b/spot is given twice"},
		"no zone twice":           {price: "1", own: []v1alpha1.Offering{zonal("", ""), zonal("on-demand", "2")}, err: "offering on-demand is given twice"},
		"a price below nothing":   {own: []v1alpha1.Offering{zonal("", "-0.1")}, err: `price "-0.1" is not a decimal number of at least 0`},
		"a price without end":     {own: []v1alpha1.Offering{zonal("", "Inf")}, err: `price "Inf" is not a decimal number of at least 0`},
		"a price that is none":    {own: []v1alpha1.Offering{zonal("", "NaN")}, err: `price "NaN" is not a decimal number of at least 0`},
		"a price beyond numbers":  {price: v1alpha1.Decimal(strings.Repeat("9", 400)), own: []v1alpha1.Offering{zonal("", "")}, err: "is not a decimal number of at least 0"},
		"a factor beyond numbers": {pricing: &v1alpha1.Pricing{Factors: []v1alpha1.PriceFactor{{CapacityType: "spot", Factor: v1alpha1.Decimal(strings.Repeat("9", 400))}}}, err: "pricing.factors[spot].factor: price"},
	} {
		t.Run(name, func(t *testing.T) {
			given := v1alpha1.InstanceType{Name: "x", Capacity: list("cpu", "2", "memory", "8Gi", "nvidia.com/gpu", "1"), Price: tc.price, Offerings: tc.own}
			pricing := &v1alpha1.CatalogPricing{Pricing: lo.FromPtr(tc.pricing), Power: tc.power}
			given.Hardware = tc.hardware
			spec := &v1alpha1.InstanceTypeCatalogSpec{Pricing: pricing, Offerings: tc.defaults, InstanceTypes: []v1alpha1.InstanceType{given}}
			checked := Check(spec)
			count, offerings, problems := checked.InstanceTypes, checked.Offerings, checked.Problems
			if tc.err != "" {
				if count != 0 || len(problems) != 1 || !strings.Contains(problems[0].Error(), tc.err) {
					t.Errorf("got %d instance types and %v, want %q", count, problems, tc.err)
				}
				return
			}
			prices, err := pricesOfCatalog(pricing)
			if err != nil {
				t.Fatal(err)
			}
			found, err := typeOf(spec, &given, prices)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range found.Offerings {
				got = append(got, fmt.Sprintf("%s %.4g", found.KeyOf(&found.Offerings[i]), found.Offerings[i].Price))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" || count != 1 || offerings != len(got) || len(problems) > 0 {
				t.Errorf("%d instance types, %d offerings, problems %v (-want +got):\n%s", count, offerings, problems, diff)
			}
		})
	}
}

// One wrong type costs the others nothing.
func TestCheckCountsTheOthers(t *testing.T) {
	spec := &v1alpha1.InstanceTypeCatalogSpec{
		Offerings: []v1alpha1.Offering{zonal("on-demand", "", "a", "b", "c"), zonal("spot", "0.1", "a")},
		InstanceTypes: []v1alpha1.InstanceType{
			{Name: "good", Capacity: list("cpu", "2", "memory", "8Gi", "nvidia.com/gpu", "0"), Price: "1"},
			{Name: "free", Capacity: list("cpu", "2", "memory", "8Gi")},
			{Name: "empty", Capacity: list("cpu", "0", "memory", "8Gi"), Price: "1"},
			{Name: "negative", Capacity: list("cpu", "1", "memory", "8Gi", "nvidia.com/gpu", "-1"), Price: "1"},
		},
	}
	checked := Check(spec)
	count, offerings, problems := checked.InstanceTypes, checked.Offerings, checked.Problems
	if count != 1 || offerings != 4 || len(problems) != 3 {
		t.Fatalf("got %d instance types with %d offerings and %v", count, offerings, problems)
	}
	for i, want := range []string{
		"instance type free: offering a,b,c/on-demand: it has no price", "instance type empty: capacity.cpu must be more than 0", "instance type negative: capacity.nvidia.com/gpu must not be less",
	} {
		if !strings.Contains(problems[i].Error(), want) {
			t.Errorf("got %q, want %q", problems[i], want)
		}
	}
}

// capacity.pods is a setting of the kubelet, so it has the bounds of maxPods.
func TestPodsOfACapacity(t *testing.T) {
	for pods, ok := range map[string]bool{"1": true, "110": true, "4096": true, "4k": true, "0": false, "500m": false, "1500m": false, "4097": false, "1E": false} {
		if err := checkCapacity(corev1.ResourceList(list("cpu", "2", "memory", "8Gi", "pods", pods))); (err == nil) != ok {
			t.Errorf("%s pods: got %v, want it to be accepted: %t", pods, err, ok)
		}
	}
}

// The CustomResourceDefinition refuses most of these labels, but not those of an object that is older than its rules,
// nor those of a file that the plugin checks.
func TestLabelsThatNoNodeCanHave(t *testing.T) {
	for name, tc := range map[string]struct {
		key   string
		value v1alpha1.LabelValue
		want  string
	}{
		"a space in the key":            {key: "my label", want: `label "my label" is not a label key: use an optional domain`},
		"no key":                        {want: `label "" is not a label key`},
		"a domain that is too long":     {key: strings.Repeat("a", 254) + "/a", want: "is not a label key"},
		"a space in the value":          {key: "disk", value: "b c", want: `label disk: "b c" is not a label value`},
		"a label of Karpenter":          {key: "karpenter.sh/initialized", value: "true", want: "label karpenter.sh/initialized must not be set here"},
		"one that Karpenter knows":      {key: "karpenter.sh/capacity-type", value: "spot", want: "label karpenter.sh/capacity-type must not be set here"},
		"one in a part of its domain":   {key: "x.karpenter.sh/a", want: "label x.karpenter.sh/a must not be set here"},
		"one that the Node sets itself": {key: "kubernetes.io/hostname", value: "a", want: "label kubernetes.io/hostname must not be set here"},
		"one of a control plane":        {key: "node-role.kubernetes.io/control-plane", want: "label node-role.kubernetes.io/control-plane must not be set here: Pods and controllers know Nodes of others by it"},
		"its former name":               {key: "node-role.kubernetes.io/master", want: "must not be set here"},
		"one of etcd":                   {key: "node-role.kubernetes.io/etcd", value: "true", want: "must not be set here"},
		"one of isolated Nodes":         {key: "node-restriction.kubernetes.io/tenant", value: "a", want: "must not be set here"},
		"one in a part of that domain":  {key: "x.node-restriction.kubernetes.io/tenant", want: "must not be set here"},
		"one that the operator sets":    {key: v1alpha1.TemplateLabel, value: "a", want: "must not be set here"},
	} {
		t.Run(name, func(t *testing.T) {
			good := v1alpha1.InstanceType{Name: "good", Capacity: list("cpu", "2", "memory", "8Gi"), Labels: map[string]v1alpha1.LabelValue{"disk": "", "example.com/disk": "ssd", "node-role.kubernetes.io/worker": ""}}
			wrong := good
			wrong.Name, wrong.Labels = "wrong", map[string]v1alpha1.LabelValue{tc.key: tc.value}
			catalog := &v1alpha1.InstanceTypeCatalog{}
			catalog.Name = "aws"
			catalog.Spec = v1alpha1.InstanceTypeCatalogSpec{Offerings: []v1alpha1.Offering{zonal("", "1")}, InstanceTypes: []v1alpha1.InstanceType{wrong, good}}
			sources, problems := ofCatalog(template(), catalog)
			if len(sources) != 1 || sources[0].Type.Name != "good" {
				t.Errorf("got %d sources, want the good one", len(sources))
			}
			if len(problems) != 1 || problems[0].Reason != v1alpha1.ReasonInstanceTypesInvalid || !strings.Contains(problems[0].Message, "InstanceTypeCatalog aws (wrong): ") || !strings.Contains(problems[0].Message, tc.want) {
				t.Errorf("got the problems %+v, want %q", problems, tc.want)
			}
		})
	}
}
