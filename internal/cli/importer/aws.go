// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/shopspring/decimal"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// awsFormat is Amazon EC2. The allowance is the default of Karpenter's provider for AWS
// (VM_MEMORY_OVERHEAD_PERCENT).
var awsFormat = Format{
	Name: "aws",
	Help: `Save these, in any order:
  aws ec2 describe-instance-types
  aws ec2 describe-instance-type-offerings --location-type availability-zone
  aws pricing get-products --service-code AmazonEC2 ..., or the price list offer file of the region
  aws ec2 describe-spot-price-history --product-descriptions Linux/UNIX --start-time NOW (optional)`,
	Allowance: decimal.RequireFromString("7.5"),
	read:      readAWS,
}

// awsInput is what the files have.
type awsInput struct {
	*inventory
	types []awsType
	// zones are those of each type, in the order of the files.
	zones map[string][]string
	spot  map[[2]string]awsSpot
	// products are the types and regions of the SKUs of shared Linux machines on demand.
	products map[string]awsProduct
	// prices are those of each region and type.
	prices map[string]map[string]decimal.Decimal
}

func readAWS(files []File, options *Options) (*inventory, error) {
	in := &awsInput{
		inventory: &inventory{skipped: skips{}},
		zones:     map[string][]string{}, spot: map[[2]string]awsSpot{},
		products: map[string]awsProduct{}, prices: map[string]map[string]decimal.Decimal{},
	}
	for _, file := range files {
		if err := in.read(file); err != nil {
			return nil, err
		}
	}
	if err := in.complete(options); err != nil {
		return nil, err
	}
	if err := in.findRegion(options); err != nil {
		return nil, err
	}
	for i := range in.types {
		m, err := in.machine(&in.types[i], options)
		if err != nil {
			return nil, err
		}
		if m != nil {
			in.machines = append(in.machines, *m)
		}
	}
	return in.inventory, nil
}

// read reads a file, which it recognizes by its fields.
func (in *awsInput) read(file File) error {
	top, err := open(file)
	if err != nil {
		return err
	}
	const want = "expected InstanceTypes, InstanceTypeOfferings, SpotPriceHistory, PriceList or an offer file of AmazonEC2"
	if top.document.isArray {
		return fmt.Errorf("%s: %s, found an array", file.Name, want)
	}
	var known bool
	var found []string
	err = top.fields(func(key string, value element) error {
		found = append(found, key)
		read, is := map[string]func(element) error{
			"InstanceTypes":         in.readTypes,
			"InstanceTypeOfferings": in.readOfferings,
			"SpotPriceHistory":      in.readSpotPrices,
			"PriceList":             in.readPriceList,
			"offerCode":             in.readOfferCode,
			"publicationDate":       in.readPublicationDate,
			"products":              in.readProducts,
			"terms":                 in.readTerms,
			"NextToken":             in.readNextToken,
		}[key]
		if !is {
			return value.skip()
		}
		known = known || key != "NextToken"
		return read(value)
	})
	if err != nil {
		return err
	}
	if !known {
		return fmt.Errorf("%s: %s, found an object with %s", file.Name, want, quoted(found))
	}
	return top.close()
}

// readNextToken returns an error if the command printed only a part.
func (in *awsInput) readNextToken(value element) error {
	var token *string
	if err := value.read(&token); err != nil {
		return err
	}
	if lo.FromPtr(token) != "" {
		return value.errorf("more follows on another page: run the command without --max-items and --no-paginate")
	}
	return nil
}

func (in *awsInput) readTypes(value element) error {
	return value.each(func(value element) error {
		t := awsType{}
		if err := value.read(&t); err != nil {
			return err
		}
		if t.InstanceType == "" {
			return value.errorf("expected a field InstanceType with the name, found none")
		}
		t.where = fmt.Sprintf("%s (%s)", value, t.InstanceType)
		in.types = append(in.types, t)
		return nil
	})
}

func (in *awsInput) readOfferings(value element) error {
	return value.each(func(value element) error {
		var o struct{ InstanceType, LocationType, Location string }
		if err := value.read(&o); err != nil {
			return err
		}
		if o.LocationType != "availability-zone" {
			return value.errorf("expected LocationType availability-zone, found %q: run describe-instance-type-offerings with --location-type availability-zone", o.LocationType)
		}
		if o.InstanceType == "" || o.Location == "" {
			return value.errorf("expected InstanceType and Location, found %q and %q", o.InstanceType, o.Location)
		}
		if slices.Contains(in.zones[o.InstanceType], o.Location) {
			return value.errorf("zone %s is listed twice for %s: expected each zone once", o.Location, o.InstanceType)
		}
		in.zones[o.InstanceType] = append(in.zones[o.InstanceType], o.Location)
		return nil
	})
}

// complete returns an error if a file is missing, with the command that prints it.
func (in *awsInput) complete(options *Options) error {
	missing := func(what, command string) error {
		return fmt.Errorf("the files have no %s: add what this prints to --from: %s", what, command)
	}
	switch {
	case len(in.types) == 0:
		return missing("instance types", "aws ec2 describe-instance-types --output json")
	case len(in.zones) == 0:
		return missing("zones", "aws ec2 describe-instance-type-offerings --location-type availability-zone --output json")
	case len(in.prices) == 0 && !options.computesPrices():
		return missing("on-demand prices of shared Linux machines",
			"aws pricing get-products --service-code AmazonEC2 --filters Type=TERM_MATCH,Field=regionCode,Value=REGION Type=TERM_MATCH,Field=operatingSystem,Value=Linux "+
				"Type=TERM_MATCH,Field=tenancy,Value=Shared Type=TERM_MATCH,Field=preInstalledSw,Value=NA Type=TERM_MATCH,Field=capacitystatus,Value=Used --region us-east-1 --output json. "+
				"Or add the offer file of the region from the Price List Bulk API")
	}
	return nil
}

// awsZone is the name of an availability zone: its region and a letter. Zones of Local Zones and
// Wavelength have more parts.
var awsZone = regexp.MustCompile(`^([a-z]+(?:-[a-z]+)+-[0-9]+)[a-z]$`)

// findRegion sets the region, which is that of the chosen zones and of the prices.
func (in *awsInput) findRegion(options *Options) error {
	regions := map[string]bool{}
	for _, zones := range in.zones {
		for _, zone := range zones {
			if parts := awsZone.FindStringSubmatch(zone); parts != nil && matches(options.Zones, zone) {
				regions[parts[1]] = true
			}
		}
	}
	names := slices.Sorted(maps.Keys(regions))
	if len(names) != 1 {
		return fmt.Errorf("expected availability zones of one region, such as us-east-1a, found those of %d: %s: choose zones with --zone", len(names), strings.Join(names, ", "))
	}
	in.region = names[0]
	if _, priced := in.prices[in.region]; !priced && len(in.prices) > 0 {
		return fmt.Errorf("the zones are in region %s, but the prices are of %s: save both for the same region", in.region, strings.Join(slices.Sorted(maps.Keys(in.prices)), ", "))
	}
	return nil
}

// addOffers adds the offers of a machine in the zones of the region.
func (in *awsInput) addOffers(m *machine, t *awsType, options *Options) {
	price, priced := in.prices[in.region][m.name]
	if !priced && !options.computesPrices() {
		return // build reports machines without offers
	}
	m.spot = slices.Contains(t.SupportedUsageClasses, karpv1.CapacityTypeSpot)
	for _, zone := range in.zones[m.name] {
		parts := awsZone.FindStringSubmatch(zone)
		if parts == nil || !matches(options.Zones, zone) {
			continue
		}
		if slices.Contains(t.SupportedUsageClasses, karpv1.CapacityTypeOnDemand) {
			o := offer{zone: zone, capacityType: karpv1.CapacityTypeOnDemand}
			if priced {
				o.price = &price
			}
			m.offers = append(m.offers, o)
		}
		if spot, sold := in.spot[[2]string{m.name, zone}]; sold && m.spot {
			m.offers = append(m.offers, offer{zone: zone, capacityType: karpv1.CapacityTypeSpot, price: &spot.price})
		}
	}
}
