// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/samber/lo"
	"github.com/shopspring/decimal"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The numbers are those that Amazon publishes for its CNI (amazon-vpc-cni-k8s: misc/eni-max-pods.txt). For types that
// are not in its list, they follow from the same formula, with the interfaces of the default network card.
func TestPodsWithSeveralNetworkCards(t *testing.T) {
	content, err := os.ReadFile("testdata/aws-cards/instance-types.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ InstanceTypes []awsType }
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for i := range file.InstanceTypes {
		got[file.InstanceTypes[i].InstanceType] = podsOf(t, &file.InstanceTypes[i])
	}
	want := map[string]int64{
		"c6in.32xlarge": 394, "g6e.48xlarge": 492, "hpc6id.32xlarge": 51, "hpc7a.96xlarge": 100, "p4d.24xlarge": 737, "p5.48xlarge": 100, "trn1.32xlarge": 247,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

func TestPodsOfTheDefaultCard(t *testing.T) {
	for name, tc := range map[string]struct {
		network string
		want    int64
	}{
		"no cards":            {`{"MaximumNetworkInterfaces": 3, "Ipv4AddressesPerInterface": 10}`, 29},
		"one card":            {`{"MaximumNetworkInterfaces": 3, "Ipv4AddressesPerInterface": 10, "NetworkCards": [{"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 3}]}`, 29},
		"the second card":     {`{"MaximumNetworkInterfaces": 5, "Ipv4AddressesPerInterface": 10, "DefaultNetworkCardIndex": 1, "NetworkCards": [{"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 3}, {"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 2}]}`, 20},
		"in any order":        {`{"MaximumNetworkInterfaces": 5, "Ipv4AddressesPerInterface": 10, "NetworkCards": [{"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 3}, {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 2}]}`, 20},
		"no default card":     {`{"MaximumNetworkInterfaces": 5, "Ipv4AddressesPerInterface": 10, "DefaultNetworkCardIndex": 7, "NetworkCards": [{"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 5}]}`, 0},
		"a card without any":  {`{"MaximumNetworkInterfaces": 5, "Ipv4AddressesPerInterface": 10, "NetworkCards": [{"NetworkCardIndex": 0}]}`, 0},
		"one address each":    {`{"MaximumNetworkInterfaces": 5, "Ipv4AddressesPerInterface": 1}`, 2},
		"no addresses at all": {`{"MaximumNetworkInterfaces": 5}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			instanceType := awsType{InstanceType: "m5.large"}
			instanceType.ProcessorInfo.SupportedArchitectures = []string{"x86_64"}
			if err := json.Unmarshal([]byte(tc.network), &instanceType.NetworkInfo); err != nil {
				t.Fatal(err)
			}
			if got := podsOf(t, &instanceType); got != tc.want {
				t.Errorf("got %d Pods, want %d", got, tc.want)
			}
		})
	}
}

// podsOf returns how many Pods a type has, and 0 if it cannot be imported.
func podsOf(t *testing.T, instanceType *awsType) int64 {
	t.Helper()
	in := &awsInput{inventory: &inventory{skipped: skips{}}}
	m, err := in.machine(instanceType, &Options{})
	if err != nil {
		return 0
	}
	pods := m.capacity[corev1.ResourcePods]
	return pods.Value()
}

// A type has offers in the zones of the region that are chosen, in the ways in which it is sold and priced.
func TestOffersOfAWS(t *testing.T) {
	for name, tc := range map[string]struct {
		classes  []string
		zones    []string
		chosen   []string
		computed bool // prices
		other    bool // a type without a price
		want     []string
	}{
		"on demand":                  {classes: []string{onDemand}, zones: []string{"us-east-1a", "us-east-1b"}, want: []string{"us-east-1a on-demand 0.1", "us-east-1b on-demand 0.1"}},
		"and spot":                   {classes: []string{onDemand, spot}, zones: []string{"us-east-1a", "us-east-1b"}, want: []string{"us-east-1a on-demand 0.1", "us-east-1a spot 0.03", "us-east-1b on-demand 0.1"}},
		"only spot":                  {classes: []string{spot}, zones: []string{"us-east-1a"}, want: []string{"us-east-1a spot 0.03"}},
		"only capacity blocks":       {classes: []string{"capacity-block"}, zones: []string{"us-east-1a"}},
		"a Local Zone":               {classes: []string{onDemand}, zones: []string{"us-east-1-bos-1a", "us-east-1b"}, want: []string{"us-east-1b on-demand 0.1"}},
		"a chosen zone":              {classes: []string{onDemand}, zones: []string{"us-east-1a", "us-east-1b"}, chosen: []string{"*b"}, want: []string{"us-east-1b on-demand 0.1"}},
		"no price":                   {other: true, classes: []string{onDemand}, zones: []string{"us-east-1a"}},
		"no price, but that of CPUs": {other: true, computed: true, classes: []string{onDemand}, zones: []string{"us-east-1a"}, want: []string{"us-east-1a on-demand "}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine("x", lo.Ternary(tc.other, "m5.metal", "m5.large"))
			in := &awsInput{
				inventory: &inventory{region: "us-east-1"}, zones: map[string][]string{m.name: tc.zones},
				prices: map[string]map[string]decimal.Decimal{"us-east-1": {"m5.large": decimal.RequireFromString("0.1")}, "us-west-2": {"m5.metal": decimal.RequireFromString("9")}},
				spot:   map[[2]string]awsSpot{{"m5.large", "us-east-1a"}: {price: decimal.RequireFromString("0.03")}},
			}
			options := &Options{Zones: tc.chosen}
			if tc.computed {
				options.CPU = new(decimal.NewFromInt(1))
			}
			in.addOffers(&m, &awsType{SupportedUsageClasses: tc.classes}, options)
			got := lo.Map(m.offers, func(o offer, _ int) string { return o.zone + " " + o.capacityType + " " + priceOf(o) })
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Accelerators have the resource of their vendor's device plugin, and only GPUs have a model.
func TestAcceleratorsOfAWS(t *testing.T) {
	for name, tc := range map[string]struct {
		given    string
		resource corev1.ResourceName
		count    int64
		model    string
	}{
		"g5.12xlarge":               {`{"GpuInfo":{"Gpus":[{"Name":"A10G","Manufacturer":"NVIDIA","Count":4}]}}`, "nvidia.com/gpu", 4, "a10g"},
		"g4ad.16xlarge":             {`{"GpuInfo":{"Gpus":[{"Name":"Radeon Pro V520","Manufacturer":"AMD","Count":4}]}}`, "amd.com/gpu", 4, "radeon-pro-v520"},
		"dl1.24xlarge":              {`{"GpuInfo":{"Gpus":[{"Name":"Gaudi HL-205","Manufacturer":"Habana","Count":8}]}}`, "habana.ai/gaudi", 8, ""},
		"trn1.32xlarge":             {`{"NeuronInfo":{"NeuronDevices":[{"Count":16}]}}`, "aws.amazon.com/neuron", 16, ""},
		"inf1.6xlarge, as before":   {`{"InferenceAcceleratorInfo":{"Accelerators":[{"Name":"Inferentia","Manufacturer":"AWS","Count":4}]}}`, "aws.amazon.com/neuron", 4, ""},
		"inf1.6xlarge, in both":     {`{"NeuronInfo":{"NeuronDevices":[{"Count":4}]},"InferenceAcceleratorInfo":{"Accelerators":[{"Manufacturer":"AWS","Count":4}]}}`, "aws.amazon.com/neuron", 4, ""},
		"an accelerator of another": {`{"InferenceAcceleratorInfo":{"Accelerators":[{"Manufacturer":"Qualcomm","Count":8}]}}`, "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			instanceType, m := awsType{}, newMachine("x", name)
			if err := json.Unmarshal([]byte(tc.given), &instanceType); err != nil {
				t.Fatal(err)
			}
			instanceType.accelerators(&m)
			if tc.count > 0 && !m.has(tc.resource, tc.count) || len(m.capacity) != min(1, int(tc.count)) || m.labels[v1alpha1.InstanceGPUNameLabel] != tc.model {
				t.Errorf("got %v %v", m.capacity, m.labels)
			}
		})
	}
}
