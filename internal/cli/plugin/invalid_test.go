// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/samber/lo"
)

// input is a file of a test: the content, or a file of testdata with changes.
type input struct {
	content string
	// source is a file in testdata. Each change replaces the first occurrence of a text.
	source  string
	changes [][2]string
	// cut is how many bytes of the file there are; 0 for all.
	cut int
}

func text(content string) input { return input{content: content} }

func as(source string) input { return input{source: source} }

func (i input) with(from, to string) input {
	i.changes = append(i.changes, [2]string{from, to})
	return i
}

func (i input) write(t *testing.T, path string) {
	t.Helper()
	content := i.content
	if i.source != "" {
		read, err := os.ReadFile(filepath.Join(testdata, i.source))
		if err != nil {
			t.Fatal(err)
		}
		content = string(read)
	}
	for _, c := range i.changes {
		if !strings.Contains(content, c[0]) {
			t.Fatalf("%s does not contain %q", i.source, c[0])
		}
		content = strings.Replace(content, c[0], c[1], 1)
	}
	if i.cut > 0 {
		content = content[:i.cut]
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// files returns the files of a cloud, with the first one replaced.
func files(first input, others ...string) []input {
	all := []input{first}
	for _, name := range others {
		all = append(all, as(name))
	}
	return all
}

var (
	awsTypes    = as("aws/instance-types.json")
	awsZones    = as("aws/instance-type-offerings.json")
	awsSpot     = as("aws/spot-price-history.json")
	awsOffer    = as("aws/offer.json")
	awsList     = as("aws/price-list.json")
	azureSKUs   = as("azure/skus.json")
	azurePrices = as("azure/prices-2.json")
	gcpTypes    = as("gcp/machine-types.json")
	gcpPrices   = as("gcp/prices.csv")
	flavors     = as("openstack/flavors.json")
)

// read returns a file of testdata; empty if it cannot be read, so that the test fails.
func read(name string) string {
	content, err := os.ReadFile(filepath.Join(testdata, name))
	if err != nil {
		return ""
	}
	return string(content)
}

// numbers returns the numbers from 0 on as texts.
func numbers(count int) []string {
	return lo.Times(count, strconv.Itoa)
}

// many returns a CSV file with types.
func many(count int) string {
	return "name,cpu,memory,price\n" + strings.Join(lo.Times(count, func(i int) string { return "type-" + strconv.Itoa(i) + ",1,1Gi,1\n" }), "")
}

// lines returns the lines of one type with prices that differ in each zone.
func lines(count int) string {
	return strings.Join(lo.Times(count, func(i int) string { return fmt.Sprintf("a,1,1Gi,%d,zone-%d\n", i+1, i) }), "")
}

// large is 900 types with 60 prices each.
var large = strings.Join(lo.Times(900, func(i int) string {
	return strings.ReplaceAll(lines(60), "a,", "type-"+strconv.Itoa(i)+",")
}), "")

var awsOthers = []string{"aws/instance-type-offerings.json", "aws/offer.json"}

// Each input is invalid: the message names the file, the line or element, and what was expected.
// Nothing is written, and the exit code is not 0.
func TestInvalid(t *testing.T) {
	truncated := func(i input, at int) input { i.cut = at; return i }
	openstack := []string{"--price-cpu", "0.02"}
	for name, tc := range map[string]struct {
		format string
		files  []input
		flags  []string
		want   []string
	}{
		"no JSON":                {"aws", files(text("----\n| InstanceTypes |\n")), nil, []string{"file-0:1", "expected JSON", "JSON as its output format"}},
		"an empty file":          {"aws", files(text(" \n")), nil, []string{"file-0", "the file is empty"}},
		"UTF-16":                 {"aws", files(text("\xff\xfe{\x00")), nil, []string{"file-0", "UTF-16", "expected UTF-8"}},
		"UTF-16 in big endian":   {"aws", files(text("\xfe\xff\x00{")), nil, []string{"file-0", "UTF-16", "expected UTF-8"}},
		"an object for an array": {"aws", files(text(`{"InstanceTypes": {}}`)), nil, []string{"file-0: InstanceTypes: expected an array, found {"}},
		"truncated in a line":    {"aws", files(text("{\n\"InstanceTypes\": [\n")), nil, []string{"file-0:3: the file ends within InstanceTypes"}},
		"a syntax error":         {"aws", files(text("{\n\"InstanceTypes\": [\n{\"InstanceType\": m5.large}\n]}")), nil, []string{"file-0:3", "expected JSON", "invalid character 'm'"}},
		"truncated":              {"aws", files(truncated(awsTypes, 3000)), nil, []string{"file-0:", "the file ends within InstanceTypes[", "truncated"}},
		"a truncated offer":      {"aws", files(truncated(awsOffer, 9000)), nil, []string{"file-0:", "the file ends within products", "truncated"}},
		"truncated between":      {"aws", files(truncated(text(`{"InstanceTypes": []`), 0)), nil, []string{"file-0:1", "truncated"}},
		"two outputs":            {"aws", files(text(`{"InstanceTypes": []} {"InstanceTypes": []}`)), nil, []string{"file-0:1", "expected the end of the file", "one command in each file"}},
		"another type of value":  {"aws", files(awsTypes.with(`"SizeInMiB": 8192`, `"SizeInMiB": "8 GiB"`), awsOthers...), nil, []string{"file-0: InstanceTypes[0]: MemoryInfo.SizeInMiB: expected a number, found a string"}},

		"aws: files of Azure":            {"aws", files(azureSKUs), nil, []string{"file-0", "expected InstanceTypes", "found an array"}},
		"aws: another object":            {"aws", files(text(`{"Regions": []}`)), nil, []string{"file-0", "expected InstanceTypes", `"Regions"`}},
		"aws: another service":           {"aws", files(awsOffer.with(`"offerCode": "AmazonEC2"`, `"offerCode": "AmazonRDS"`)), nil, []string{"file-0: offerCode", "expected the offer file of AmazonEC2", "AmazonRDS"}},
		"aws: no prices":                 {"aws", files(awsTypes, "aws/instance-type-offerings.json"), nil, []string{"no on-demand prices", "aws pricing get-products --service-code AmazonEC2"}},
		"aws: no zones":                  {"aws", files(awsTypes, "aws/offer.json"), nil, []string{"no zones", "describe-instance-type-offerings --location-type availability-zone"}},
		"aws: no types":                  {"aws", files(awsOffer, "aws/instance-type-offerings.json"), nil, []string{"no instance types", "aws ec2 describe-instance-types"}},
		"aws: one page of several":       {"aws", files(text(`{"InstanceTypes": [], "NextToken": "abc"}`)), nil, []string{"NextToken", "without --max-items"}},
		"aws: a type without a name":     {"aws", files(awsTypes.with(`"InstanceType": "m6i.xlarge",`, ``), awsOthers...), nil, []string{"file-0: InstanceTypes[1]: expected a field InstanceType with the name"}},
		"aws: a type without a size":     {"aws", files(awsTypes.with(`"InstanceType": "m6i.xlarge"`, `"InstanceType": "m6i"`), awsOthers...), nil, []string{"InstanceTypes[1] (m6i)", "expected a name such as m5.large"}},
		"aws: a type without a family":   {"aws", files(awsTypes.with(`"InstanceType": "m6i.xlarge"`, `"InstanceType": "6.xlarge"`), awsOthers...), nil, []string{"InstanceTypes[1] (6.xlarge)", "expected a name such as m5.large"}},
		"aws: only a token":              {"aws", files(text(`{"NextToken": null}`)), nil, []string{"file-0: expected InstanceTypes, ", `found an object with "NextToken"`}},
		"aws: a zone without a type":     {"aws", files(awsZones.with(`"InstanceType": `, `"Type": `)), nil, []string{"InstanceTypeOfferings[0]: expected InstanceType and Location"}},
		"aws: a zone without a name":     {"aws", files(awsZones.with(`"Location": `, `"Zone": `)), nil, []string{"InstanceTypeOfferings[0]: expected InstanceType and Location"}},
		"aws: a type twice":              {"aws", files(awsTypes, "aws/instance-type-offerings.json", "aws/offer.json", "aws/instance-types.json"), nil, []string{"(c6i.2xlarge)", "it is already described at"}},
		"aws: without memory":            {"aws", files(awsTypes.with(`"SizeInMiB": 16384`, `"Size": 16384`), awsOthers...), nil, []string{"InstanceTypes[1] (m6i.xlarge)", "expected memory", "found 0 bytes"}},
		"aws: without CPUs":              {"aws", files(awsTypes.with(`"DefaultVCpus": 2`, `"DefaultVCpus": 0`), awsOthers...), nil, []string{"InstanceTypes[0] (m6i.large)", "expected 1 to 10000 CPUs, found 0"}},
		"aws: memory in another unit":    {"aws", files(awsTypes.with(`"SizeInMiB": 8192`, `"SizeInMiB": 8589934592`), awsOthers...), nil, []string{"(m6i.large)", "expected memory of 1 MiB to 1 PiB"}},
		"aws: memory that overflows":     {"aws", files(awsTypes.with(`"SizeInMiB": 8192`, `"SizeInMiB": 17592186052608`), awsOthers...), nil, []string{"(m6i.large)", "expected memory of 1 MiB to 1 PiB"}},
		"aws: without addresses":         {"aws", files(awsTypes.with(`"Ipv4AddressesPerInterface": 10`, `"Ipv4AddressesPerInterface": 0`), awsOthers...), nil, []string{"(m6i.large)", "Ipv4AddressesPerInterface"}},
		"aws: a zone twice":              {"aws", files(awsZones.with(`"Location": "us-east-1b"`, `"Location": "us-east-1a"`)), nil, []string{"InstanceTypeOfferings[", "zone us-east-1a is listed twice for m6i.large"}},
		"aws: regions instead of zones":  {"aws", files(awsZones.with(`"LocationType": "availability-zone"`, `"LocationType": "region"`)), nil, []string{"InstanceTypeOfferings[0]", "expected LocationType availability-zone"}},
		"aws: zones of two regions":      {"aws", files(awsZones.with(`"Location": "us-east-1b"`, `"Location": "us-west-2b"`), "aws/instance-types.json", "aws/offer.json"), nil, []string{"zones of one region", "us-east-1, us-west-2", "--zone"}},
		"aws: prices of another region":  {"aws", files(text(strings.ReplaceAll(read("aws/offer.json"), `"us-east-1"`, `"us-west-2"`)), "aws/instance-types.json", "aws/instance-type-offerings.json"), nil, []string{"region us-east-1, but the prices are of us-west-2"}},
		"aws: a negative price":          {"aws", files(awsOffer.with(`"USD": "0.0960000000"`, `"USD": "-0.0960000000"`)), nil, []string{"terms.OnDemand.", "(m6i.large)", "price -0.096 is negative"}},
		"aws: an absurd price":           {"aws", files(awsOffer.with(`"USD": "0.0960000000"`, `"USD": "96000000000"`)), nil, []string{"(m6i.large)", "is too high"}},
		"aws: a price that is no number": {"aws", files(awsOffer.with(`"USD": "0.0960000000"`, `"USD": "cheap"`)), nil, []string{"(m6i.large)", `"cheap" is not a decimal number`}},
		"aws: a price per month":         {"aws", files(awsOffer.with(`"unit": "Hrs"`, `"unit": "Mo"`)), nil, []string{"(m6i.large)", "unit Hrs", `"Mo"`}},
		"aws: an unknown currency":       {"aws", files(awsOffer.with(`"USD": "0.0960000000"`, `"XQZ": "0.0960000000"`)), nil, []string{"(m6i.large)", `currency "XQZ"`, "ISO 4217"}},
		"aws: a price in two currencies": {"aws", files(awsOffer.with(`"USD": "0.0960000000"`, `"USD": "0.0960000000", "CNY": "0.6"`)), nil, []string{"(m6i.large)", "expected pricePerUnit in one currency, found 2"}},
		"aws: two currencies":            {"aws", files(awsOffer.with(`"USD": "0.1920000000"`, `"CNY": "0.1920000000"`)), nil, []string{"(m6i.xlarge)", "price in CNY, but others are in USD"}},
		"aws: two prices":                {"aws", []input{awsList, awsOffer.with(`"USD": "0.1920000000"`, `"USD": "0.2000000000"`)}, nil, []string{"(m6i.xlarge)", "two prices in us-east-1: 0.192 and 0.2"}},
		"aws: terms without products":    {"aws", files(text(`{"offerCode": "AmazonEC2", "terms": {}}`)), nil, []string{"file-0: terms", "expected products before terms"}},
		"aws: a product that is no JSON": {"aws", files(text(`{"PriceList": ["m5.large 0.096"]}`)), nil, []string{"file-0: PriceList[0]", "expected a text of JSON"}},
		"aws: a negative spot price":     {"aws", files(awsSpot.with(`"SpotPrice": "0.037200"`, `"SpotPrice": "-0.037200"`)), nil, []string{"SpotPriceHistory[", "price -0.0372 is negative"}},
		"aws: an absurd spot price":      {"aws", files(awsSpot.with(`"SpotPrice": "0.037200"`, `"SpotPrice": "37.2"`), append(awsOthers, "aws/instance-types.json")...), nil, []string{"(m6i.large)", "spot price 37.2", "more than 10 times the on-demand price 0.096"}},
		"aws: a spot price without type": {"aws", files(awsSpot.with(`"InstanceType": `, `"Type": `)), nil, []string{"SpotPriceHistory[0]: expected AvailabilityZone and InstanceType"}},
		"aws: a spot price without zone": {"aws", files(awsSpot.with(`"AvailabilityZone": `, `"Zone": `)), nil, []string{"SpotPriceHistory[0]: expected AvailabilityZone and InstanceType"}},
		"aws: a spot price without time": {"aws", files(awsSpot.with(`"Timestamp": "2026-11-20T05:32:07+00:00"`, `"Timestamp": "today"`)), nil, []string{"SpotPriceHistory[0]", "expected a Timestamp"}},

		"azure: no prices":               {"azure", files(azureSKUs), nil, []string{"no prices", "https://prices.azure.com/api/retail/prices"}},
		"azure: no sizes":                {"azure", files(azurePrices), nil, []string{"no sizes", "az vm list-skus"}},
		"azure: a missing page":          {"azure", files(azureSKUs, "azure/prices-1.json"), nil, []string{"NextPageLink", "save all pages"}},
		"azure: another object":          {"azure", files(text(`{"value": []}`)), nil, []string{"file-0", "expected an array of sizes", `"value"`}},
		"azure: disks":                   {"azure", files(azureSKUs.with(`"resourceType": "virtualMachines"`, `"resourceType": "disks"`)), nil, []string{"[0]", "expected resourceType virtualMachines", `"disks"`}},
		"azure: without a name":          {"azure", files(azureSKUs.with(`"name": "Standard_D2s_v5"`, `"name": ""`)), nil, []string{"[0]: expected a name and one location"}},
		"azure: a size in two locations": {"azure", files(azureSKUs.with("\"locations\": [\n", "\"locations\": [\n\"westus\",\n")), nil, []string{"[0]: expected a name and one location"}},
		"azure: all prices elsewhere":    {"azure", files(text(strings.ReplaceAll(read("azure/prices-2.json"), `"eastus"`, `"westus"`)), "azure/skus.json"), nil, []string{"sizes are in eastus, but the prices are of westus"}},
		"azure: without memory":          {"azure", files(azureSKUs.with(`"name": "MemoryGB"`, `"name": "Memory"`), "azure/prices-2.json"), nil, []string{"[0] (Standard_D2s_v5)", "expected memory"}},
		"azure: memory that overflows":   {"azure", files(azureSKUs.with("\"name\": \"MemoryGB\",\n        \"value\": \"8\"", "\"name\": \"MemoryGB\",\n        \"value\": \"17179869192\""), "azure/prices-2.json"), nil, []string{"(Standard_D2s_v5)", "expected memory of 1 MiB to 1 PiB"}},
		"azure: CPUs that overflow":      {"azure", files(azureSKUs.with("\"name\": \"vCPUsAvailable\",\n        \"value\": \"2\"", "\"name\": \"vCPUs\",\n        \"value\": \"18446744073709551618\""), "azure/prices-2.json"), nil, []string{"(Standard_D2s_v5)", "expected 1 to 10000 CPUs"}},
		"azure: memory that is no size":  {"azure", files(azureSKUs.with("\"name\": \"MemoryGB\",\n        \"value\": \"8\"", "\"name\": \"MemoryGB\",\n        \"value\": \"8Gi\""), "azure/prices-2.json"), nil, []string{"(Standard_D2s_v5)", "capability MemoryGB: expected a number"}},
		"azure: another architecture":    {"azure", files(azureSKUs.with(`"value": "x64"`, `"value": "riscv"`), "azure/prices-2.json"), nil, []string{"(Standard_D2s_v5)", "expected x64 or Arm64"}},
		"azure: two locations":           {"azure", files(text(strings.Replace(read("azure/skus.json"), "\"locations\": [\n      \"eastus\"", "\"locations\": [\n      \"westus\"", 1)), "azure/prices-2.json"), nil, []string{"location eastus, but others are in westus", "--location"}},
		"azure: prices elsewhere":        {"azure", files(azurePrices.with(`"armRegionName": "eastus"`, `"armRegionName": "westus"`), "azure/skus.json"), nil, []string{"sizes are in eastus, but the prices are of eastus, westus"}},
		"azure: a price per month":       {"azure", files(azurePrices.with(`"unitOfMeasure": "1 Hour"`, `"unitOfMeasure": "1/Month"`), "azure/skus.json"), nil, []string{"Items[0]", "expected unitOfMeasure 1 Hour"}},
		"azure: a negative price":        {"azure", files(azurePrices.with(`"retailPrice": `, `"retailPrice": -`), "azure/skus.json"), nil, []string{"Items[0]", "is negative"}},
		"azure: an absurd price":         {"azure", files(azurePrices.with(`"retailPrice": `, `"retailPrice": 1e999999999, "x": `), "azure/skus.json"), nil, []string{"Items[0]", "is not a decimal number"}},
		"azure: two currencies":          {"azure", files(azurePrices.with(`"currencyCode": "USD"`, `"currencyCode": "EUR"`), "azure/skus.json"), nil, []string{"Items[1]", "price in USD, but others are in EUR"}},
		"azure: no currency":             {"azure", files(azurePrices.with(`"currencyCode": "USD"`, `"currencyCode": ""`), "azure/skus.json"), nil, []string{"Items[0]", `currency ""`, "ISO 4217"}},

		"gcp: no prices":             {"gcp", files(gcpTypes), nil, []string{"no prices", "machine-type, capacity-type and price"}},
		"gcp: no machine types":      {"gcp", files(gcpPrices), nil, []string{"no machine types", "gcloud compute machine-types list"}},
		"gcp: an object":             {"gcp", files(text(`{"items": []}`)), nil, []string{"file-0", "expected an array of machine types"}},
		"gcp: another kind":          {"gcp", files(gcpTypes.with(`"kind": "compute#machineType"`, `"kind": "compute#image"`)), nil, []string{"[0]", "expected kind compute#machineType"}},
		"gcp: without a name":        {"gcp", files(gcpTypes.with(`"name": "n2-standard-2"`, `"name": ""`)), nil, []string{"[0]: expected kind compute#machineType with name and zone"}},
		"gcp: without a zone":        {"gcp", files(gcpTypes.with(`"zone": "us-central1-a"`, `"zone": ""`)), nil, []string{"[0]: expected kind compute#machineType with name and zone"}},
		"gcp: a zone of no region":   {"gcp", files(text(`[{"kind": "compute#machineType", "name": "n2-standard-2", "zone": "local"}]`)), openstack, []string{"expected zones of one region", "found those of 0"}},
		"gcp: a zone without region": {"gcp", files(text(`[{"kind": "compute#machineType", "name": "n2-standard-2", "zone": "-a"}]`)), openstack, []string{"expected zones of one region", "found those of 0"}},
		"gcp: other CPUs":            {"gcp", files(gcpTypes.with(`"guestCpus": 2`, `"guestCpus": 4`), "gcp/prices.csv"), nil, []string{"(n2-standard-2)", "expected the same in all zones"}},
		"gcp: other architectures":   {"gcp", files(gcpTypes.with(`"architecture": "X86_64"`, `"architecture": "ARM64"`), "gcp/prices.csv"), nil, []string{"(n2-standard-2)", "expected the same in all zones"}},
		"gcp: GPUs below none":       {"gcp", files(text(`[{"kind": "compute#machineType", "name": "x", "zone": "r-a", "guestCpus": 2, "memoryMb": 8192, "accelerators": [{"guestAcceleratorType": "ct5", "guestAcceleratorCount": -1}]}]`)), openstack, []string{"[0] (x): google.com/tpu is negative: -1"}},
		"gcp: a zone twice":          {"gcp", files(gcpTypes, "gcp/prices.csv", "gcp/machine-types.json"), nil, []string{"(n2-standard-2)", "zone us-central1-a is listed twice"}},
		"gcp: other memory":          {"gcp", files(gcpTypes.with(`"memoryMb": 8192`, `"memoryMb": 4096`), "gcp/prices.csv"), nil, []string{"(n2-standard-2)", "expected the same in all zones"}},
		"gcp: another architecture":  {"gcp", files(gcpTypes.with(`"architecture": "X86_64"`, `"architecture": "SPARC"`), "gcp/prices.csv"), nil, []string{"[0] (n2-standard-2)", "expected architecture X86_64 or ARM64"}},
		"gcp: several regions":       {"gcp", files(gcpTypes.with(`"zone": "us-central1-b"`, `"zone": "europe-west1-b"`), "gcp/prices.csv"), nil, []string{"zones of one region", "europe-west1, us-central1"}},
		"gcp: an unknown column":     {"gcp", files(gcpPrices.with("price,zone", "cost,zone"), "gcp/machine-types.json"), nil, []string{"file-0:1", `unknown column "cost"`, "expected machine-type, price"}},
		"gcp: a capacity type":       {"gcp", files(gcpPrices.with("n2-standard-2,spot", "n2-standard-2,preemptible"), "gcp/machine-types.json"), nil, []string{"file-0:4", "on-demand or spot", `"preemptible"`}},
		"gcp: a price twice":         {"gcp", files(gcpPrices.with("n2-standard-2,spot", "n2-standard-2,on-demand"), "gcp/machine-types.json"), nil, []string{"file-0:4", "a second price of n2-standard-2 for on-demand"}},
		"gcp: a price per month":     {"gcp", files(gcpPrices.with("0.097118", "$70.9/month"), "gcp/machine-types.json"), nil, []string{"file-0:3", `"$70.9/month" is not a decimal number`}},
		"gcp: a price with exponent": {"gcp", files(gcpPrices.with("0.097118", "1e999999999"), "gcp/machine-types.json"), nil, []string{"file-0:3", `"1e999999999" is not a decimal number`}},
		"gcp: a missing field":       {"gcp", files(gcpPrices.with("n2-standard-2,spot,0.0236,,USD", "n2-standard-2,spot,0.0236"), "gcp/machine-types.json"), nil, []string{"file-0", "line 4", "wrong number of fields"}},

		"openstack: no prices":             {"openstack", files(flavors), nil, []string{"--price-cpu, --price-memory or --price-gpu"}},
		"openstack: an object":             {"openstack", files(text(`{"flavors": []}`)), openstack, []string{"file-0", "expected an array of flavors"}},
		"openstack: without --long":        {"openstack", files(text(`[{"ID": "1", "Flavor": "m1.small"}]`)), openstack, []string{"file-0: [0]", "openstack flavor list --long -f json"}},
		"openstack: without a name":        {"openstack", files(flavors.with(`"Name": "m1.small"`, `"Name": ""`)), openstack, []string{"file-0: [0]: expected a flavor with Name"}},
		"openstack: without memory":        {"openstack", files(flavors.with(`"RAM": 2048`, `"RAM": 0`)), openstack, []string{"[0] (m1.small)", "expected memory"}},
		"openstack: properties":            {"openstack", files(flavors.with(`"Properties": {}`, `"Properties": "hw:cpu_policy"`)), openstack, []string{"[0] (m1.small)", "expected properties such as"}},
		"openstack: GPUs":                  {"openstack", files(flavors.with(`"nvidia-t4:1"`, `"nvidia-t4:many"`)), openstack, []string{"(g1.large)", "expected a number of devices"}},
		"openstack: GPUs below none":       {"openstack", files(flavors.with(`"nvidia-t4:1"`, `"nvidia-t4:-1"`)), openstack, []string{"(g1.large)", "expected a number of devices"}},
		"openstack: two outputs":           {"openstack", files(text(`[] []`)), openstack, []string{"file-0:1: expected the end of the file"}},
		"openstack: a name no label":       {"openstack", files(flavors.with(`"m1.small"`, `"m1 small"`)), openstack, []string{"(m1 small)", "cannot be a label of Nodes"}},
		"openstack: a zone twice":          {"openstack", files(flavors), append([]string{"--zone", "nova,nova"}, openstack...), []string{`zone "nova" is given twice`}},
		"openstack: a zone no label":       {"openstack", files(flavors), append([]string{"--zone", "zone one"}, openstack...), []string{`zone "zone one" cannot be a label`}},
		"csv: JSON":                        {"csv", files(flavors), nil, []string{"file-0:1", "unknown column"}},
		"csv: no column":                   {"csv", files(text("name,cpu\na,1\n")), nil, []string{"file-0:1", "there is no column memory"}},
		"csv: a column twice":              {"csv", files(text("name,cpu,memory,cpu\na,1,1Gi,2\n")), nil, []string{"file-0:1", `column "cpu" is there twice`}},
		"csv: memory without unit":         {"csv", files(text("name,cpu,memory,price\na,1,16,1\n")), nil, []string{"file-0:2 (a)", "expected memory with a unit, such as 16Gi", `"16"`}},
		"csv: an unknown unit":             {"csv", files(text("name,cpu,memory,price\na,1,16GB,1\n")), nil, []string{"file-0:2 (a)", "expected memory with a unit", `"16GB"`}},
		"csv: no memory":                   {"csv", files(text("name,cpu,memory,price\na,1,,1\n")), nil, []string{"file-0:2", "column memory is empty"}},
		"csv: no memory at all":            {"csv", files(text("name,cpu,memory,price\na,1,0Gi,1\n")), nil, []string{"file-0:2 (a)", "expected memory"}},
		"csv: negative CPUs":               {"csv", files(text("name,cpu,memory,price\na,-1,1Gi,1\n")), nil, []string{"file-0:2 (a)", "expected cpu", `"-1"`}},
		"csv: no price":                    {"csv", files(text("name,cpu,memory\na,1,1Gi\n")), nil, []string{"file-0:2 (a)", "expected a price"}},
		"csv: a negative price":            {"csv", files(text("name,cpu,memory,price\na,1,1Gi,-1\n")), nil, []string{"file-0:2 (a)", "price -1 is negative"}},
		"csv: a zone twice":                {"csv", files(text("name,cpu,memory,price,zones\na,1,1Gi,1,x;x\n")), nil, []string{"file-0:2 (a)", `zone "x" is given twice`}},
		"csv: a zone twice in lines":       {"csv", files(text("name,cpu,memory,price,zones\na,1,1Gi,1,x\na,1,1Gi,2,x\n")), nil, []string{"file-0:2 (a)", `zone "x" is given twice`}},
		"csv: zones and none":              {"csv", files(text("name,cpu,memory,price,zones\na,1,1Gi,1,x\na,1,1Gi,2,\n")), nil, []string{"file-0:2 (a)", "some offers have zones"}},
		"csv: other values":                {"csv", files(text("name,cpu,memory,price,zones\na,1,1Gi,1,x\na,2,1Gi,1,y\n")), nil, []string{"file-0:3", "a has other values than at", "file-0:2"}},
		"csv: other memory":                {"csv", files(text("name,cpu,memory,price,zones\na,1,1Gi,1,x\na,1,2Gi,1,y\n")), nil, []string{"file-0:3", "a has other values than at"}},
		"csv: other GPUs":                  {"csv", files(text("name,cpu,memory,price,zones,gpu\na,1,1Gi,1,x,1\na,1,1Gi,1,y,2\n")), nil, []string{"file-0:3", "a has other values than at"}},
		"csv: no GPUs in one line":         {"csv", files(text("name,cpu,memory,price,zones,gpu\na,1,1Gi,1,x,1\na,1,1Gi,1,y,0\n")), nil, []string{"file-0:3", "a has other values than at"}},
		"csv: other labels":                {"csv", files(text("name,cpu,memory,price,zones,family\na,1,1Gi,1,x,f\na,1,1Gi,1,y,g\n")), nil, []string{"file-0:3", "a has other values than at"}},
		"csv: other architectures":         {"csv", files(text("name,cpu,memory,price,zones,architecture\na,1,1Gi,1,x,amd64\na,1,1Gi,1,y,arm64\n")), nil, []string{"file-0:3", "a has other values than at"}},
		"csv: fewer machines than none":    {"csv", files(text("name,cpu,memory,price,max-machines\na,1,1Gi,1,-1\n")), nil, []string{"file-0:2 (a)", "max-machines as a number that is not negative"}},
		"csv: two currencies":              {"csv", files(text("name,cpu,memory,price,currency\na,1,1Gi,1,EUR\nb,1,1Gi,1,USD\n")), nil, []string{"file-0:3 (b)", "price in USD, but others are in EUR"}},
		"csv: an unknown currency":         {"csv", files(text("name,cpu,memory,price,currency\na,1,1Gi,1,euro\n")), nil, []string{"file-0:2 (a)", `"euro" is not a code of ISO 4217`}},
		"csv: another architecture":        {"csv", files(text("name,cpu,memory,price,architecture\na,1,1Gi,1,x86\n")), nil, []string{"file-0:2 (a)", "amd64 or arm64"}},
		"csv: a label that is invalid":     {"csv", files(text("name,cpu,memory,price,family\na,1,1Gi,1,very large\n")), []string{"--name", "x"}, []string{"file-0:2 (a)", "instance-family", "very large"}},
		"csv: machines that are no number": {"csv", files(text("name,cpu,memory,price,max-machines\na,1,1Gi,1,few\n")), nil, []string{"file-0:2 (a)", "max-machines"}},

		"too many types":              {"csv", files(text(many(1001))), nil, []string{"1001 instance types", "at most 1000", "--family"}},
		"too many zones":              {"csv", files(text("name,cpu,memory,price,zones\na,1,1Gi,1," + strings.Join(numbers(33), ";") + "\n")), nil, []string{"file-0:2 (a)", "33 zones", "--zone"}},
		"too many offerings":          {"csv", files(text("name,cpu,memory,price,zones\n" + lines(65))), nil, []string{"file-0:2 (a)", "65 offerings", "--zone"}},
		"too many bytes":              {"csv", files(text("name,cpu,memory,price,zones\n" + large)), nil, []string{"the catalog has", "1.5 MiB", "--family"}},
		"nothing is left":             {"aws", files(awsTypes, awsOthers...), []string{"--family", "x1"}, []string{"no instance type is left of", "filters"}},
		"no file":                     {"aws", nil, nil, []string{"required flag", "from"}},
		"a name that is invalid":      {"aws", files(awsTypes, awsOthers...), []string{"--name", "AWS us"}, []string{`the name "AWS us"`, "--name"}},
		"a pattern":                   {"aws", files(awsTypes, awsOthers...), []string{"--family", "m[6"}, []string{`--family "m[6"`, "pattern"}},
		"an allowance":                {"aws", files(awsTypes, awsOthers...), []string{"--memory-allowance", "75%"}, []string{"--memory-allowance 75%", "between 0% and 50%"}},
		"an allowance no number":      {"aws", files(awsTypes, awsOthers...), []string{"--memory-allowance", "200Mi"}, []string{"--memory-allowance", `"200Mi" is not a decimal number`}},
		"a factor":                    {"aws", files(awsTypes, awsOthers...), []string{"--spot-factor", "35"}, []string{"--spot-factor 35 is not between 0 and 10"}},
		"a price per CPU":             {"aws", files(awsTypes, awsOthers...), []string{"--price-cpu", "-0.1"}, []string{"--price-cpu -0.1 is not between 0 and"}},
		"a date":                      {"aws", files(awsTypes, awsOthers...), []string{"--date", "yesterday"}, []string{`--date "yesterday"`, "2026-11-20"}},
		"no storage":                  {"aws", files(awsTypes, awsOthers...), []string{"--ephemeral-storage", "0"}, []string{"--ephemeral-storage 0 is not more than 0"}},
		"an allowance below none":     {"aws", files(awsTypes, awsOthers...), []string{"--memory-allowance=-1%"}, []string{"--memory-allowance -1% is not between 0% and 50%"}},
		"a factor below none":         {"aws", files(awsTypes, awsOthers...), []string{"--spot-factor=-0.1"}, []string{"--spot-factor -0.1 is not between 0 and 10"}},
		"an absurd price per GiB":     {"aws", files(awsTypes, awsOthers...), []string{"--price-memory", "10000001"}, []string{"--price-memory 10000001 is not between 0 and 10000000"}},
		"an empty pattern":            {"aws", files(awsTypes, awsOthers...), []string{"--size", "large,"}, []string{`--size "" is not a pattern`}},
		"no currency":                 {"aws", files(awsTypes, awsOthers...), []string{"--currency", "euro"}, []string{`--currency: currency "euro" is not a code of ISO 4217`}},
		"a currency in small letters": {"aws", files(awsTypes, awsOthers...), []string{"--currency", "usd"}, []string{`--currency: currency "usd" is not a code of ISO 4217`}},
		"another currency":            {"aws", files(awsTypes, awsOthers...), []string{"--currency", "EUR"}, []string{"prices are in USD, but --currency is EUR"}},
		"another region":              {"aws", files(awsTypes, awsOthers...), []string{"--region", "us-west-2"}, []string{"us-east-1, but --region is us-west-2"}},
		"storage":                     {"aws", files(awsTypes, awsOthers...), []string{"--ephemeral-storage", "77 GB"}, []string{`--ephemeral-storage "77 GB"`, "77Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			arguments := []string{"catalog", "import", tc.format}
			for i, file := range tc.files {
				path := filepath.Join(folder, "file-"+numbers(len(tc.files))[i])
				file.write(t, path)
				arguments = append(arguments, "--from", path)
			}
			output := filepath.Join(folder, "catalog.yaml")
			arguments = append(append(arguments, tc.flags...), "--output", output)
			out, messages, code := run(t, arguments...)
			if code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if _, err := os.Stat(output); !os.IsNotExist(err) || out != "" {
				t.Errorf("something was written: %v %q", err, out)
			}
			for _, want := range tc.want {
				if !strings.Contains(messages, want) {
					t.Errorf("the message does not contain %q:\n%s", want, messages)
				}
			}
		})
	}
}
