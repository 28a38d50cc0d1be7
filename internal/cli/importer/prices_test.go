// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"strings"
	"testing"
)

// Of the products of EC2, only shared Linux machines on demand without a license are the price of a Node.
func TestAWSPricesOfNodes(t *testing.T) {
	const usual = `{"sku":"A","productFamily":"Compute Instance","attributes":{"instanceType":"m5.large","regionCode":"us-east-1","locationType":"AWS Region","operatingSystem":"Linux",` +
		`"tenancy":"Shared","capacitystatus":"Used","preInstalledSw":"NA","licenseModel":"No License required","marketoption":"OnDemand"}}`
	for name, tc := range map[string]struct {
		from, to string
		want     bool
	}{
		"usual":                 {want: true},
		"bare metal":            {`"Compute Instance"`, `"Compute Instance (bare metal)"`, true},
		"older lists":           {`"marketoption":"OnDemand"`, `"x":"y"`, true},
		"no license model":      {`"licenseModel":"No License required",`, ``, true},
		"no software":           {`"preInstalledSw":"NA",`, ``, true},
		"no location type":      {`"locationType":"AWS Region",`, ``, true},
		"a Local Zone":          {`"AWS Region"`, `"AWS Local Zone"`, false},
		"Windows":               {`"Linux"`, `"Windows"`, false},
		"RHEL":                  {`"Linux"`, `"RHEL"`, false},
		"dedicated":             {`"Shared"`, `"Dedicated"`, false},
		"a host":                {`"Shared"`, `"Host"`, false},
		"a reservation":         {`"Used"`, `"AllocatedCapacityReservation"`, false},
		"an unused reservation": {`"Used"`, `"UnusedCapacityReservation"`, false},
		"SQL Server":            {`"NA"`, `"SQL Std"`, false},
		"a license":             {`"No License required"`, `"Bring your own license"`, false},
		"capacity blocks":       {`"OnDemand"`, `"CapacityBlock"`, false},
		"storage":               {`"Compute Instance"`, `"Storage"`, false},
		"no type":               {`"m5.large"`, `""`, false},
		"no region":             {`"us-east-1"`, `""`, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := &awsInput{inventory: &inventory{}, products: map[string]awsProduct{}}
			product := strings.Replace(usual, tc.from, tc.to, 1)
			if err := in.read(File{"offer.json", strings.NewReader(`{"offerCode":"AmazonEC2","products":{"A":` + product + `}}`)}); err != nil {
				t.Fatal(err)
			}
			if _, got := in.products["A"]; got != tc.want {
				t.Errorf("it is the price of a Node: got %t, want %t", got, tc.want)
			}
		})
	}
}

// The latest spot price of Linux counts, in any order of the history.
func TestLatestSpotPrice(t *testing.T) {
	entry := func(at, product, price string) string {
		return `{"AvailabilityZone":"us-east-1a","InstanceType":"m5.large","ProductDescription":"` + product + `","SpotPrice":"` + price + `","Timestamp":"` + at + `"}`
	}
	for name, history := range map[string][]string{
		"newest first":      {entry("2026-11-20T05:00:00+00:00", "Linux/UNIX", "0.03"), entry("2026-11-19T05:00:00+00:00", "Linux/UNIX", "0.01")},
		"oldest first":      {entry("2026-11-19T05:00:00+00:00", "Linux/UNIX", "0.01"), entry("2026-11-20T05:00:00+00:00", "Linux/UNIX", "0.03")},
		"of other time":     {entry("2026-11-20T06:00:00+02:00", "Linux/UNIX", "0.01"), entry("2026-11-20T05:00:00+00:00", "Linux/UNIX", "0.03")},
		"with Windows":      {entry("2026-11-20T05:00:00+00:00", "Linux/UNIX", "0.03"), entry("2026-11-20T06:00:00+00:00", "Windows", "0.09")},
		"in a VPC":          {entry("2026-11-20T05:00:00+00:00", "Linux/UNIX (Amazon VPC)", "0.03")},
		"the same twice":    {entry("2026-11-20T05:00:00+00:00", "Linux/UNIX", "0.03"), entry("2026-11-20T05:00:00+00:00", "Linux/UNIX", "0.03")},
		"SUSE is not Linux": {entry("2026-11-20T05:00:00+00:00", "Linux/UNIX", "0.03"), entry("2026-11-20T06:00:00+00:00", "SUSE Linux", "0.09")},
	} {
		t.Run(name, func(t *testing.T) {
			in := &awsInput{inventory: &inventory{}, spot: map[[2]string]awsSpot{}}
			if err := in.read(File{"spot.json", strings.NewReader(`{"SpotPriceHistory":[` + strings.Join(history, ",") + `]}`)}); err != nil {
				t.Fatal(err)
			}
			if got := in.spot[[2]string{"m5.large", "us-east-1a"}].price.String(); got != "0.03" || len(in.spot) != 1 || in.date != "2026-11-20" {
				t.Errorf("got %s of %d, of %s", got, len(in.spot), in.date)
			}
		})
	}
}

// Of several prices of a size, the one that took effect last counts, in any order of the pages.
func TestLatestAzurePrice(t *testing.T) {
	item := func(since, price string) string {
		return `{"currencyCode":"USD","tierMinimumUnits":0.0,"retailPrice":` + price + `,"armRegionName":"eastus","effectiveStartDate":"` + since + `","productName":"Virtual Machines Dsv5 Series",` +
			`"skuName":"D2s v5","serviceName":"Virtual Machines","unitOfMeasure":"1 Hour","type":"Consumption","armSkuName":"Standard_D2s_v5"}`
	}
	before, since := item("2026-01-01T00:00:00Z", "0.4"), item("2026-06-01T00:00:00Z", "0.5")
	for name, items := range map[string][]string{"older first": {before, since}, "newer first": {since, before}, "the same twice": {since, since}} {
		in := &azureInput{inventory: &inventory{}, prices: map[[2]string]azurePrice{}, regions: map[string]bool{}}
		if err := in.read(File{"prices.json", strings.NewReader(`{"Items":[` + strings.Join(items, ",") + `]}`)}); err != nil {
			t.Fatal(err)
		}
		if got := in.prices[[2]string{"Standard_D2s_v5", onDemand}].price.String(); got != "0.5" {
			t.Errorf("%s: got %s, want 0.5", name, got)
		}
	}
	in := &azureInput{inventory: &inventory{}, prices: map[[2]string]azurePrice{}, regions: map[string]bool{}}
	err := in.read(File{"prices.json", strings.NewReader(`{"Items":[` + since + `,` + item("2026-06-01T00:00:00Z", "0.6") + `]}`)})
	if err == nil || !strings.Contains(err.Error(), "two prices for on-demand since 2026-06-01T00:00:00Z: 0.5 and 0.6") {
		t.Errorf("two prices of one time: got %v", err)
	}
}

// Numbers need little memory, whatever their exponents are.
func TestParseDecimal(t *testing.T) {
	for text, want := range map[string]string{
		"0.096": "0.096", "1.2E-4": "0.00012", "-1": "-1", "1e25": "1" + strings.Repeat("0", 25), "1e-25": "0." + strings.Repeat("0", 24) + "1",
		strings.Repeat("1", 25): strings.Repeat("1", 25),
		"1e26":                  "", "1e-26": "", strings.Repeat("1", 26): "", "": "", "$1": "", "NaN": "",
	} {
		got, err := ParseDecimal(text)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%q: got %s and %v, want %q", text, got, err, want)
		}
	}
}
