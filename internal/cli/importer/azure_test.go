// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The capabilities are those of real sizes. Small ones have parts of a GB.
func TestAzureCapabilities(t *testing.T) {
	const mi = mebibyte
	type machineOf struct {
		CPU    string
		Memory int64
		Arch   string
		Disk   string // GiB
		Spot   bool
	}
	for name, tc := range map[string]struct {
		capabilities string
		want         machineOf
	}{
		"Standard_B1ls":           {"vCPUs=1 MemoryGB=0.5 MaxResourceVolumeMB=4096", machineOf{"1", 512 * mi, "amd64", "4", false}},
		"Standard_A1":             {"vCPUs=1 MemoryGB=1.75 MaxResourceVolumeMB=71680", machineOf{"1", 1792 * mi, "amd64", "70", false}},
		"Standard_A0":             {"vCPUs=1 MemoryGB=0.75 MaxResourceVolumeMB=20480", machineOf{"1", 768 * mi, "amd64", "20", false}},
		"Standard_DS1_v2":         {"vCPUs=1 vCPUsAvailable=1 MemoryGB=3.5 MaxResourceVolumeMB=7168 CpuArchitectureType=x64 LowPriorityCapable=True", machineOf{"1", 3584 * mi, "amd64", "7", true}},
		"Standard_D4pls_v5":       {"vCPUs=4 MemoryGB=8 MaxResourceVolumeMB=0 CpuArchitectureType=Arm64 LowPriorityCapable=False", machineOf{"4", 8192 * mi, "arm64", "", false}},
		"Standard_M416-208ms_v2":  {"vCPUs=416 vCPUsAvailable=208 MemoryGB=11400 MaxResourceVolumeMB=8388608", machineOf{"208", 11400 * 1024 * mi, "amd64", "8192", false}},
		"Standard_L8s_v3":         {"vCPUs=8 MemoryGB=64 MaxResourceVolumeMB=81920 NvmeDiskSizeInMiB=1831420", machineOf{"8", 65536 * mi, "amd64", "1788", false}},
		"no number of vCPUs left": {"vCPUs=2 vCPUsAvailable=0 MemoryGB=4", machineOf{"2", 4096 * mi, "amd64", "", false}},
	} {
		t.Run(name, func(t *testing.T) {
			size := azureSize{Name: name, Locations: []string{"eastus"}}
			for pair := range strings.FieldsSeq(tc.capabilities) {
				key, value, _ := strings.Cut(pair, "=")
				size.Capabilities = append(size.Capabilities, struct{ Name, Value string }{key, value})
			}
			in := &azureInput{inventory: &inventory{skipped: skips{}, region: "eastus"}}
			m, err := in.machine(&size, false, &Options{CPU: new(decimal.NewFromInt(1))})
			if err != nil || m == nil {
				t.Fatalf("got %v and %v", m, err)
			}
			got := machineOf{m.cpu.String(), m.memory, m.architecture, m.labels[v1alpha1.InstanceLocalStorageLabel], m.spot}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The zones of a size are those that the subscription can use, with the region in their names.
func TestAzureZones(t *testing.T) {
	restricted := func(kind string, zones ...string) (r azureRestriction) {
		r.Type, r.RestrictionInfo.Zones = kind, zones
		return r
	}
	for name, tc := range map[string]struct {
		zones        []string
		restrictions []azureRestriction
		zonal        bool // other sizes have zones
		chosen       []string
		want         []string // nil: it is left out
	}{
		"all":                    {zones: []string{"3", "1", "2"}, zonal: true, want: []string{"eastus-1", "eastus-2", "eastus-3"}},
		"not all for us":         {zones: []string{"1", "2", "3"}, restrictions: []azureRestriction{restricted("Zone", "2", "3")}, zonal: true, want: []string{"eastus-1"}},
		"two restrictions":       {zones: []string{"1", "2", "3"}, restrictions: []azureRestriction{restricted("Zone", "2"), restricted("Zone", "3")}, zonal: true, want: []string{"eastus-1"}},
		"none for us":            {zones: []string{"1"}, restrictions: []azureRestriction{restricted("Zone", "1")}, zonal: true},
		"the region is not ours": {zones: []string{"1"}, restrictions: []azureRestriction{restricted("Location")}, zonal: true},
		"a region without zones": {want: []string{""}},
		"chosen ones":            {zones: []string{"1", "2"}, zonal: true, chosen: []string{"*-2"}, want: []string{"eastus-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			size := azureSize{Name: "Standard_D2s_v5", Locations: []string{"eastus"}, Restrictions: tc.restrictions}
			size.Capabilities = []struct{ Name, Value string }{{"vCPUs", "2"}, {"MemoryGB", "8"}}
			size.LocationInfo = []struct {
				Location string   `json:"location"`
				Zones    []string `json:"zones"`
			}{{"eastus", tc.zones}}
			in := &azureInput{inventory: &inventory{skipped: skips{}, region: "eastus"}}
			m, err := in.machine(&size, tc.zonal, &Options{CPU: new(decimal.NewFromInt(1)), Zones: tc.chosen})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			if m != nil {
				for _, o := range m.offers {
					got = append(got, o.zone)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (len(in.skipped) > 0) != (tc.want == nil) {
				t.Errorf("skipped: %v", in.skipped)
			}
		})
	}
}

// Windows, reservations, low priority, dedicated hosts and tiers are not the price of a Linux Node.
func TestAzurePricesOfNodes(t *testing.T) {
	const usual = `{"currencyCode":"USD","tierMinimumUnits":0.0,"retailPrice":0.5,"armRegionName":"eastus","effectiveStartDate":"2026-01-01T00:00:00Z",` +
		`"productName":"Virtual Machines Dsv5 Series","skuName":"D2s v5","serviceName":"Virtual Machines","unitOfMeasure":"1 Hour","type":"Consumption","armSkuName":"Standard_D2s_v5"}`
	for name, tc := range map[string]struct {
		changes []string // pairs
		want    map[[2]string]string
	}{
		"on demand":         {want: map[[2]string]string{{"Standard_D2s_v5", onDemand}: "0.5"}},
		"spot":              {[]string{`"D2s v5"`, `"D2s v5 Spot"`}, map[[2]string]string{{"Standard_D2s_v5", spot}: "0.5"}},
		"a tier of zero":    {[]string{`0.0,`, `0,`}, map[[2]string]string{{"Standard_D2s_v5", onDemand}: "0.5"}},
		"since always":      {[]string{`"effectiveStartDate":"2026-01-01T00:00:00Z",`, ``}, map[[2]string]string{{"Standard_D2s_v5", onDemand}: "0.5"}},
		"low priority":      {[]string{`"D2s v5"`, `"D2s v5 Low Priority"`}, nil},
		"Windows":           {[]string{`Dsv5 Series`, `Dsv5 Series Windows`}, nil},
		"cloud services":    {[]string{`Dsv5 Series`, `Dsv5 Series Cloud Services`}, nil},
		"dedicated hosts":   {[]string{`Dsv5 Series`, `Dsv5 Series Dedicated Host`}, nil},
		"a reservation":     {[]string{`"Consumption"`, `"Reservation"`}, nil},
		"another service":   {[]string{`"serviceName":"Virtual Machines"`, `"serviceName":"Storage"`}, nil},
		"no size":           {[]string{`"Standard_D2s_v5"`, `""`}, nil},
		"a further tier":    {[]string{`0.0,`, `100.0,`}, nil},
		"nothing to pay":    {[]string{`0.5`, `0`}, nil},
		"not sold any more": {[]string{`0.5`, `0.0`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := &azureInput{inventory: &inventory{}, prices: map[[2]string]azurePrice{}, regions: map[string]bool{}}
			content := strings.NewReplacer(append(tc.changes, "\x00", "")...).Replace(usual)
			if err := in.read(File{"prices.json", strings.NewReader(`{"Items":[` + content + `],"NextPageLink":null}`)}); err != nil {
				t.Fatal(err)
			}
			var got map[[2]string]string
			for key, price := range in.prices {
				got = map[[2]string]string{key: price.price.String()}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
