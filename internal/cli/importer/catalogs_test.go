// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	"github.com/shopspring/decimal"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The files of a small cloud, as its command line prints them.

// awsTypesOf returns what describe-instance-types prints for types such as "m5.large x86_64 on-demand,spot".
func awsTypesOf(types ...string) string {
	return `{"InstanceTypes": [` + strings.Join(lo.Map(types, func(text string, _ int) string {
		parts := strings.Fields(text)
		return fmt.Sprintf(`{"InstanceType": %q, "SupportedUsageClasses": ["%s"], "ProcessorInfo": {"SupportedArchitectures": [%q]}, "VCpuInfo": {"DefaultVCpus": 2},`+
			`"MemoryInfo": {"SizeInMiB": 8192}, "NetworkInfo": {"MaximumNetworkInterfaces": 3, "Ipv4AddressesPerInterface": 10}}`, parts[0], strings.ReplaceAll(parts[2], ",", `","`), parts[1])
	}), ",") + `], "NextToken": null}`
}

// awsZonesOf returns what describe-instance-type-offerings prints for pairs such as "m5.large us-east-1a".
func awsZonesOf(pairs ...string) string {
	return `{"InstanceTypeOfferings": [` + strings.Join(lo.Map(pairs, func(text string, _ int) string {
		name, zone, _ := strings.Cut(text, " ")
		return fmt.Sprintf(`{"InstanceType": %q, "LocationType": "availability-zone", "Location": %q}`, name, zone)
	}), ",") + `]}`
}

const awsProductOf = `{"sku": %q, "productFamily": "Compute Instance", "attributes": {"instanceType": %q, "regionCode": "us-east-1", "operatingSystem": "Linux", "tenancy": "Shared", "capacitystatus": "Used"}}`

const awsTermOf = `{"x": {"priceDimensions": {"y": {"unit": "Hrs", "pricePerUnit": {"USD": %q}}}}}`

// awsOfferOf returns an offer file with the prices of pairs such as "m5.large 0.1".
func awsOfferOf(pairs ...string) string {
	var products, terms []string
	for _, text := range pairs {
		name, price, _ := strings.Cut(text, " ")
		products = append(products, fmt.Sprintf(`%q: `+awsProductOf, name, name, name))
		terms = append(terms, fmt.Sprintf(`%q: `+awsTermOf, name, price))
	}
	return `{"offerCode": "AmazonEC2", "publicationDate": "2026-11-20T18:00:00Z", "products": {` + strings.Join(products, ",") + `}, "terms": {"OnDemand": {` + strings.Join(terms, ",") + `}}}`
}

// awsListOf returns what get-products prints for a pair.
func awsListOf(name, price, date string) string {
	entry := fmt.Sprintf(`{"product": `+awsProductOf+`, "terms": {"OnDemand": `+awsTermOf+`}, "publicationDate": %q}`, name, name, price, date)
	text, _ := json.Marshal(entry)
	return `{"PriceList": [` + string(text) + `]}`
}

// azureSizesOf returns what list-skus prints for sizes such as "Standard_D2s_v5 True 1,2".
func azureSizesOf(sizes ...string) string {
	return "[" + strings.Join(lo.Map(sizes, func(text string, _ int) string {
		parts := append(strings.Fields(text), "")
		zones := strings.ReplaceAll(lo.Ternary(parts[2] == "", "", `"`+parts[2]+`"`), ",", `","`)
		return fmt.Sprintf(`{"name": %q, "resourceType": "virtualMachines", "locations": ["eastus"], "locationInfo": [{"location": "eastus", "zones": [%s]}],`+
			`"capabilities": [{"name": "vCPUs", "value": "2"}, {"name": "MemoryGB", "value": "8"}, {"name": "LowPriorityCapable", "value": %q}]}`, parts[0], zones, parts[1])
	}), ",") + "]"
}

// azurePricesOf returns a page of prices of pairs such as "Standard_D2s_v5 0.1 Spot".
func azurePricesOf(pairs ...string) string {
	return `{"Items": [` + strings.Join(lo.Map(pairs, func(text string, _ int) string {
		parts := append(strings.Fields(text), "x")
		return fmt.Sprintf(`{"currencyCode": "USD", "tierMinimumUnits": 0, "retailPrice": %s, "armRegionName": "eastus", "effectiveStartDate": "2026-01-01T00:00:00Z", "productName": "Virtual Machines",`+
			`"skuName": "x %s", "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour", "type": "Consumption", "armSkuName": %q}`, parts[1], parts[2], parts[0])
	}), ",") + `], "NextPageLink": null}`
}

// gcpTypesOf returns what machine-types list prints for pairs such as "n2-standard-2 us-central1-a".
func gcpTypesOf(pairs ...string) string {
	return "[" + strings.Join(lo.Map(pairs, func(text string, _ int) string {
		parts := append(strings.Fields(text), "")
		return fmt.Sprintf(`{"kind": "compute#machineType", "name": %q, "zone": %q, "guestCpus": 2, "memoryMb": 8192%s}`, parts[0], parts[1], parts[2])
	}), ",") + "]"
}

// described returns a catalog as a line of its own and one for each type.
func described(c *v1alpha1.InstanceTypeCatalog) []string {
	lines := []string{strings.TrimSpace(fmt.Sprintf("%s: %s %s", c.Name, c.Spec.Source, c.Spec.Currency))}
	for _, it := range c.Spec.InstanceTypes {
		line := []string{it.Name}
		for _, name := range slices.Sorted(maps.Keys(it.Capacity)) {
			quantity := it.Capacity[name]
			line = append(line, fmt.Sprintf("%s=%s", name, quantity.String()))
		}
		for _, key := range slices.Sorted(maps.Keys(it.Labels)) {
			if key == v1alpha1.InstanceMemoryLabel {
				continue // see TestMemoryThatIsSold
			}
			line = append(line, fmt.Sprintf("%s=%s", key[strings.LastIndex(key, "/")+1:], it.Labels[key]))
		}
		for _, driver := range slices.Sorted(maps.Keys(it.VolumeAttachmentLimits)) {
			line = append(line, fmt.Sprintf("%s:%d", driver, it.VolumeAttachmentLimits[driver]))
		}
		for _, o := range lo.Ternary(len(it.Offerings) == 0, c.Spec.Offerings, it.Offerings) {
			offering := fmt.Sprintf("%s[%s]@%s", o.CapacityType, zonesOf(o), lo.CoalesceOrEmpty(o.Price, it.Price))
			if o.MaxMachines != nil {
				offering += fmt.Sprintf("<=%d", *o.MaxMachines)
			}
			line = append(line, offering)
		}
		lines = append(lines, strings.Join(line, " "))
	}
	return lines
}

// The label has the memory that is sold, and the capacity what a Node has of it.
func TestMemoryThatIsSold(t *testing.T) {
	for name, tc := range map[string]struct {
		format       Format
		files        []string
		label, nodes string
	}{
		"gcp": {gcpFormat, []string{gcpTypesOf("n2-standard-2 us-central1-a"), "machine-type,price\nn2-standard-2,0.1\n"}, "8192", "7577Mi"},
		"csv": {csvFormat, []string{"name,cpu,memory,price\na,1,1100000Ki,1\n"}, "1074", "1074Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			files := lo.Map(tc.files, func(content string, i int) File { return File{fmt.Sprintf("file-%d", i), strings.NewReader(content)} })
			result, err := tc.format.Import(files, Options{Name: "x"})
			if err != nil {
				t.Fatal(err)
			}
			it := result.Catalog.Spec.InstanceTypes[0]
			if memory := it.Capacity[corev1.ResourceMemory]; string(it.Labels[v1alpha1.InstanceMemoryLabel]) != tc.label || memory.String() != tc.nodes {
				t.Errorf("got the label %s and the capacity %s, want %s and %s", it.Labels[v1alpha1.InstanceMemoryLabel], memory.String(), tc.label, tc.nodes)
			}
		})
	}
}

func TestCatalogs(t *testing.T) {
	number := func(text string) *decimal.Decimal { return new(decimal.RequireFromString(text)) }
	priced := Options{CPU: number("0.1"), Memory: number("0.01")}
	const m5 = "m5.large cpu=2 memory=7577Mi pods=29 instance-category=m instance-family=m5 instance-generation=5 instance-size=large arch=amd64 region=us-east-1"
	const d2 = "Standard_D2s_v5 cpu=2 memory=7577Mi instance-category=D instance-cpu-manufacturer=intel instance-family=Dsv5 instance-generation=5 instance-size=2 arch=amd64 region=eastus"
	const n2 = "n2-standard-2 cpu=2 memory=7577Mi instance-category=n instance-cpu-manufacturer=intel instance-family=n2 instance-generation=2 instance-size=standard-2 arch=amd64 region=us-central1"
	for name, tc := range map[string]struct {
		format  Format
		files   []string
		options Options
		want    []string
		skipped []string
	}{
		"aws: the date of the offer file": {
			awsFormat, []string{awsTypesOf("m5.large x86_64 on-demand,spot"), awsZonesOf("m5.large us-east-1a"), awsOfferOf("m5.large 0.1")}, Options{},
			[]string{"aws-us-east-1: aws us-east-1, 2026-11-20 USD", m5 + " on-demand[us-east-1a]@0.1"}, nil,
		},
		"aws: the date of the prices": {
			awsFormat, []string{awsTypesOf("m5.large x86_64 on-demand"), awsZonesOf("m5.large us-east-1a"), awsListOf("m5.large", "0.1", "2026-11-21T18:00:00Z")}, Options{Region: "us-east-1", Currency: "USD"},
			[]string{"aws-us-east-1: aws us-east-1, 2026-11-21 USD", m5 + " on-demand[us-east-1a]@0.1"}, nil,
		},
		"aws: one region of two": {
			awsFormat, []string{awsTypesOf("m5.large x86_64 on-demand"), awsZonesOf("m5.large us-east-1a", "m5.large us-west-2a"), awsOfferOf("m5.large 0.1")}, Options{Zones: []string{"us-east-1?"}},
			[]string{"aws-us-east-1: aws us-east-1, 2026-11-20 USD", m5 + " on-demand[us-east-1a]@0.1"}, nil,
		},
		"aws: what is left out": {
			awsFormat, []string{
				awsTypesOf("m5.large x86_64 on-demand,spot", "mac1.metal x86_64_mac on-demand", "m5.free x86_64 on-demand", "m5.metal x86_64 on-demand"), awsZonesOf("m5.large us-east-1a", "m5.free us-east-1a", "m5.metal us-east-1a"),
				awsOfferOf("m5.large 0.1", "m5.free 0.0000000000"),
			}, Options{},
			[]string{"aws-us-east-1: aws us-east-1, 2026-11-20 USD", m5 + " on-demand[us-east-1a]@0.1"},
			[]string{
				"skipped instance types of architectures that do not run Linux nodes, such as x86_64_mac: mac1.metal",
				"skipped instance types without an on-demand price in one of the chosen zones: m5.free, m5.metal",
			},
		},
		"aws: spot only of what is sold as spot": {
			awsFormat, []string{awsTypesOf("m5.b x86_64 on-demand", "m5.a x86_64 on-demand,spot"), awsZonesOf("m5.a us-east-1a", "m5.b us-east-1a"), awsOfferOf("m5.a 0.1", "m5.b 0.1")}, Options{SpotFactor: number("0.5")},
			[]string{
				"aws-us-east-1: aws us-east-1, 2026-11-20 USD", strings.NewReplacer("m5.large", "m5.a", "size=large", "size=a").Replace(m5) + " on-demand[us-east-1a]@0.1 spot[us-east-1a]@0.1",
				strings.NewReplacer("m5.large", "m5.b", "size=large", "size=b").Replace(m5) + " on-demand[us-east-1a]@0.1",
			}, nil,
		},
		"azure: without prices": {
			azureFormat, []string{azureSizesOf("Standard_D2s_v5 True 1,2")}, priced, []string{"azure-eastus: azure eastus", d2 + " on-demand[eastus-1,eastus-2]@"}, nil,
		},
		"azure: a region with zones": {
			azureFormat, []string{azureSizesOf("Standard_D2s_v5 True 1,2", "Standard_D4s_v5 True"), azurePricesOf("Standard_D2s_v5 0.1", "Standard_D4s_v5 0.2")}, Options{},
			[]string{"azure-eastus: azure eastus USD", d2 + " on-demand[eastus-1,eastus-2]@0.1"}, []string{"skipped instance types without a zone in which the subscription can use them: Standard_D4s_v5"},
		},
		"azure: a region without zones": {
			azureFormat, []string{azureSizesOf("Standard_D2s_v5 True"), azurePricesOf("Standard_D2s_v5 0.1")}, Options{Zones: []string{"*-1"}}, []string{"azure-eastus: azure eastus USD", d2 + " on-demand[]@0.1"}, nil,
		},
		"azure: what is not sold as spot, or at all": {
			azureFormat, []string{azureSizesOf("Standard_D2s_v5 False 1", "Standard_D4s_v5 True 1"), azurePricesOf("Standard_D2s_v5 0.1", "Standard_D2s_v5 0.02 Spot")}, Options{},
			[]string{"azure-eastus: azure eastus USD", d2 + " on-demand[eastus-1]@0.1"}, []string{"skipped instance types without an on-demand price in one of the chosen zones: Standard_D4s_v5"},
		},
		"gcp: without prices": {
			gcpFormat, []string{gcpTypesOf("n2-standard-2 https://www.googleapis.com/compute/v1/projects/x/zones/us-central1-a", "n2-standard-2 us-central1-b")}, priced,
			[]string{"gcp-us-central1: gcp us-central1", n2 + " on-demand[us-central1-a,us-central1-b]@"}, nil,
		},
		"gcp: chosen zones": {
			gcpFormat, []string{gcpTypesOf("n2-standard-2 us-central1-a", "n2-standard-2 us-central1-b", "n2-standard-2 europe-west1-a"), "machine-type,price\nn2-standard-2,0.1\n"}, Options{Zones: []string{"us-*-b"}, SpotFactor: number("0.5"), MemoryAllowance: number("0")},
			[]string{"gcp-us-central1: gcp us-central1", strings.Replace(n2, "7577Mi", "8Gi", 1) + " on-demand[us-central1-b]@0.1 spot[us-central1-b]@0.1"}, nil,
		},
		"openstack: a flavor without a family": {
			openstackFormat, []string{`[{"Name": "large", "RAM": 2048, "VCPUs": 1, "Properties": {}}]`}, Options{GPU: number("0.5"), SpotFactor: number("0.5")},
			[]string{"openstack: openstack", "large cpu=1 memory=1894Mi arch=amd64 on-demand[]@ spot[]@"}, nil,
		},
		"openstack: a disk of less than its file system": {
			openstackFormat, []string{`[{"Name": "m1.tiny", "RAM": 512, "Disk": 1, "VCPUs": 1, "Properties": {}}, {"Name": "m1.small", "RAM": 2048, "VCPUs": 1, "Properties": {}}]`}, Options{Memory: priced.Memory, Sizes: []string{"t*"}},
			[]string{"openstack: openstack", "m1.tiny cpu=1 ephemeral-storage=0 memory=473Mi instance-family=m1 instance-size=tiny arch=amd64 on-demand[]@"}, nil,
		},
		"gcp: many that are deprecated": {
			gcpFormat, []string{gcpTypesOf(append(lo.Times(7, func(i int) string {
				return fmt.Sprintf(`n1-old-%d us-central1-a ,"deprecated":{"state":"OBSOLETE"}`, 6-i)
			}), "n2-standard-2 us-central1-a")...)}, priced,
			[]string{"gcp-us-central1: gcp us-central1", n2 + " on-demand[us-central1-a]@"}, []string{"skipped instance types that are deprecated: n1-old-0, n1-old-1, n1-old-2, n1-old-3, n1-old-4 and 2 more"},
		},
		"gcp: as many as are named": {
			gcpFormat, []string{gcpTypesOf(append(lo.Times(5, func(i int) string {
				return fmt.Sprintf(`n1-old-%d us-central1-a ,"deprecated":{"state":"OBSOLETE"}`, i)
			}), "n2-standard-2 us-central1-a")...)}, priced,
			[]string{"gcp-us-central1: gcp us-central1", n2 + " on-demand[us-central1-a]@"}, []string{"skipped instance types that are deprecated: n1-old-0, n1-old-1, n1-old-2, n1-old-3, n1-old-4"},
		},
		"gcp: what is deprecated": {
			gcpFormat, []string{gcpTypesOf("n2-standard-2 us-central1-a", `n1-old us-central1-a ,"deprecated":{"state":"DEPRECATED"}`), "machine-type,price\nn2-standard-2,0.1\nn1-old,0.1\n"}, Options{},
			[]string{"gcp-us-central1: gcp us-central1", n2 + " on-demand[us-central1-a]@0.1"}, []string{"skipped instance types that are deprecated: n1-old"},
		},
		"csv: nothing but what is required": {
			csvFormat, []string{"name,cpu,memory\na,1,1Gi\n"}, Options{Name: "x", CPU: priced.CPU}, []string{"x: csv", "a cpu=1 memory=1Gi arch=amd64 on-demand[]@"}, nil,
		},
		"csv: filters": {
			csvFormat, []string{"name,cpu,memory,price,family,size,architecture\na,1,1Gi,1,f,s,amd64\nb,1,1Gi,1,g,s,amd64\nc,1,1Gi,1,f,t,amd64\nd,1,1Gi,1,f,s,arm64\n"},
			Options{Name: "x", Families: []string{"F"}, Sizes: []string{"r", "s"}, Architectures: []string{"amd*"}, Currency: "EUR", Date: "2026-11-20", Region: "here"},
			[]string{"x: csv here, 2026-11-20 EUR", "a cpu=1 memory=1Gi instance-family=f instance-size=s arch=amd64 region=here on-demand[]@1"}, nil,
		},
		"csv: all columns": {
			csvFormat, []string{"\ufeffName, CPU, Memory, Ephemeral Storage, pods, gpu, zones, capacity-type, price, max_machines, currency, architecture, region, family, size, label:example.com/Rack, capacity:example.com/fpga\n" +
				"# a comment\na, 1, 1Gi, 10Gi, 29, 2, \"x, y;z\", spot, 0.1, 0, EUR, arm64, r, f, s, 7, 3\n"}, Options{Name: "x"},
			[]string{"x: csv EUR", "a cpu=1 ephemeral-storage=10Gi example.com/fpga=3 memory=1Gi nvidia.com/gpu=2 pods=29 Rack=7 instance-family=f instance-size=s arch=arm64 region=r spot[x,y,z]@0.1<=0"}, nil,
		},
		"csv: volumes": {
			csvFormat, []string{"name,cpu,memory,price,volumes:csi.vsphere.vmware.com,volumes:x\na,1,1Gi,1,59,\nb,1,1Gi,1,,0\n"}, Options{Name: "x"},
			[]string{"x: csv", "a cpu=1 memory=1Gi arch=amd64 csi.vsphere.vmware.com:59 on-demand[]@1", "b cpu=1 memory=1Gi arch=amd64 x:0 on-demand[]@1"}, nil,
		},
		"csv: none of what can be none": {
			csvFormat, []string{"name,cpu,memory,gpu,region,family,price\na,1,1Gi,0,,,0.1\n"}, Options{Name: "x"}, []string{"x: csv", "a cpu=1 memory=1Gi arch=amd64 on-demand[]@0.1"}, nil,
		},
		"csv: the smallest and the largest machine": {
			csvFormat, []string{"name,cpu,memory,price\na,1m,1Mi,0\nb,10000,1024Ti,10000000\n"}, Options{Name: "x"}, []string{"x: csv", "a cpu=1m memory=1Mi arch=amd64 on-demand[]@0", "b cpu=10k memory=1Pi arch=amd64 on-demand[]@10000000"}, nil,
		},
		"csv: chosen zones": {
			csvFormat, []string{"name,cpu,memory,zones,price\na,1,1Gi,\"x,y\",0.1\nb,1,1Gi,,0.2\n"}, Options{Name: "x", Zones: []string{"y"}},
			[]string{"x: csv", "a cpu=1 memory=1Gi arch=amd64 on-demand[y]@0.1", "b cpu=1 memory=1Gi arch=amd64 on-demand[]@0.2"}, nil,
		},
		"csv: spot": {
			csvFormat, []string{"name,cpu,memory,zones,price\na,1,1Gi,x,0.1\n"}, Options{Name: "x", SpotFactor: number("0.5")}, []string{"x: csv", "a cpu=1 memory=1Gi arch=amd64 on-demand[x]@0.1 spot[x]@0.1"}, nil,
		},
		"csv: spot beside on demand": {
			csvFormat, []string{"name,cpu,memory,zones,capacity-type,price\na,1,1Gi,x,on-demand,0.1\na,1,1Gi,x,spot,\nb,1,1Gi,x,spot,5\nc,1,1Gi,x,on-demand,0\nc,1,1Gi,x,spot,0.1\nd,1,1Gi,x,on-demand,0.1\nd,1,1Gi,x,spot,1\n"},
			Options{Name: "x", CPU: priced.CPU}, []string{
				"x: csv", "a cpu=1 memory=1Gi arch=amd64 on-demand[x]@0.1 spot[x]@0.1", "b cpu=1 memory=1Gi arch=amd64 spot[x]@5",
				"c cpu=1 memory=1Gi arch=amd64 on-demand[x]@0 spot[x]@0.1", "d cpu=1 memory=1Gi arch=amd64 on-demand[x]@0.1 spot[x]@1",
			}, nil,
		},
		"csv: the most that a catalog can have of one type": {
			csvFormat, []string{"name,cpu,memory,zones,price\n" + strings.Join(lo.Times(64, func(i int) string {
				return fmt.Sprintf("a,1,1Gi,%s,%d\n", strings.Join(lo.Times(lo.Ternary(i == 0, 32, 1), func(j int) string { return fmt.Sprintf("z%d-%d", i, j) }), ";"), i+1)
			}), "")}, Options{Name: "x"}, nil, nil,
		},
		"csv: the most types": {
			csvFormat, []string{"name,cpu,memory,price\n" + strings.Join(lo.Times(1000, func(i int) string { return fmt.Sprintf("a%d,1,1Gi,1\n", i) }), "")}, Options{Name: "x"}, nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := lo.Map(tc.files, func(content string, i int) File { return File{fmt.Sprintf("file-%d", i), strings.NewReader(content)} })
			got, err := tc.format.Import(files, tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want != nil {
				if diff := cmp.Diff(tc.want, described(got.Catalog)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(strings.Join(tc.skipped, "\n"), strings.Join(got.Skipped, "\n")); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoFiles(t *testing.T) {
	if _, err := csvFormat.Import(nil, Options{}); err == nil || err.Error() != "there are no files: name them with --from" {
		t.Errorf("got %v", err)
	}
}

// broken is a file of which only the beginning can be read.
type broken struct{ *bytes.Reader }

func (b broken) Read(into []byte) (int, error) {
	n, err := b.Reader.Read(into)
	if errors.Is(err, io.EOF) {
		err = errors.New("the disk is broken")
	}
	return n, err
}

func TestFilesThatCannotBeRead(t *testing.T) {
	for content, want := range map[string]string{
		"":                                   "file: the disk is broken",
		`{"x": "` + strings.Repeat("x", 600): "file: x: the disk is broken",
		`{"x": 1` + strings.Repeat(" ", 600): "file: the disk is broken",
	} {
		_, err := awsFormat.Import([]File{{"file", broken{bytes.NewReader([]byte(content))}}}, Options{})
		if err == nil || err.Error() != want {
			t.Errorf("after %d bytes: got %v, want %q", len(content), err, want)
		}
	}
}
