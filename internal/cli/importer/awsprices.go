// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// awsSpot is the latest spot price of a type in a zone.
type awsSpot struct {
	price decimal.Decimal
	at    time.Time
}

func (in *awsInput) readSpotPrices(value element) error {
	return value.each(func(value element) error {
		var s struct {
			AvailabilityZone, InstanceType, ProductDescription, SpotPrice string
			Timestamp                                                     string
		}
		if err := value.read(&s); err != nil {
			return err
		}
		if s.AvailabilityZone == "" || s.InstanceType == "" {
			return value.errorf("expected AvailabilityZone and InstanceType, found %q and %q", s.AvailabilityZone, s.InstanceType)
		}
		at, err := time.Parse(time.RFC3339, s.Timestamp)
		if err != nil {
			return value.errorf("expected a Timestamp such as 2026-11-20T10:00:00+00:00, found %q", s.Timestamp)
		}
		if !strings.HasPrefix(s.ProductDescription, "Linux/UNIX") {
			return nil
		}
		price, err := parsePrice(value.String(), s.SpotPrice)
		if err != nil {
			return err
		}
		key := [2]string{s.InstanceType, s.AvailabilityZone}
		if at.After(in.spot[key].at) {
			in.spot[key] = awsSpot{price, at}
		}
		in.setDate(at.UTC().Format(time.DateOnly))
		return nil
	})
}

// awsProduct is a product of the price list.
type awsProduct struct {
	SKU           string `json:"sku"`
	ProductFamily string `json:"productFamily"`
	Attributes    struct {
		InstanceType    string `json:"instanceType"`
		RegionCode      string `json:"regionCode"`
		LocationType    string `json:"locationType"`
		OperatingSystem string `json:"operatingSystem"`
		Tenancy         string `json:"tenancy"`
		CapacityStatus  string `json:"capacitystatus"`
		PreInstalledSW  string `json:"preInstalledSw"`
		LicenseModel    string `json:"licenseModel"`
		MarketOption    string `json:"marketoption"`
	} `json:"attributes"`
}

// isNode reports whether a product is a shared Linux machine on demand.
func (p *awsProduct) isNode() bool {
	a := &p.Attributes
	return strings.HasPrefix(p.ProductFamily, "Compute Instance") && a.InstanceType != "" && a.RegionCode != "" &&
		(a.LocationType == "" || a.LocationType == "AWS Region") && a.OperatingSystem == "Linux" && a.Tenancy == "Shared" &&
		a.CapacityStatus == "Used" && (a.PreInstalledSW == "NA" || a.PreInstalledSW == "") &&
		(a.LicenseModel == "" || a.LicenseModel == "No License required") && (a.MarketOption == "" || a.MarketOption == "OnDemand")
}

// awsTerm is the price of a product.
type awsTerm struct {
	PriceDimensions map[string]struct {
		Unit         string            `json:"unit"`
		PricePerUnit map[string]string `json:"pricePerUnit"`
	} `json:"priceDimensions"`
}

func (in *awsInput) readOfferCode(value element) error {
	var code string
	if err := value.read(&code); err != nil {
		return err
	}
	if code != "AmazonEC2" {
		return value.errorf("expected the offer file of AmazonEC2, found that of %q", code)
	}
	return nil
}

func (in *awsInput) readPublicationDate(value element) error {
	var date string
	if err := value.read(&date); err != nil {
		return err
	}
	if _, err := time.Parse(time.RFC3339, date); err != nil {
		return value.errorf("expected a time such as 2026-11-20T18:00:00Z, found %q", date)
	}
	in.setDate(date)
	return nil
}

// readProducts reads products of an offer file.
func (in *awsInput) readProducts(value element) error {
	return value.fields(func(sku string, value element) error {
		p := awsProduct{}
		if err := value.read(&p); err != nil {
			return err
		}
		if p.isNode() {
			in.products[sku] = p
		}
		return nil
	})
}

// readTerms reads terms of an offer file, which follow the products.
func (in *awsInput) readTerms(value element) error {
	if len(in.products) == 0 {
		return value.errorf("expected products before terms, with shared Linux machines among them, as in the offer file of AmazonEC2")
	}
	return value.fields(func(kind string, value element) error {
		if kind != "OnDemand" {
			return value.skip()
		}
		return value.fields(func(sku string, value element) error {
			p, is := in.products[sku]
			if !is {
				return value.skip()
			}
			terms := map[string]awsTerm{}
			if err := value.read(&terms); err != nil {
				return err
			}
			return in.addPrice(value, &p, terms)
		})
	})
}

// readPriceList reads what aws pricing get-products prints: products with their terms, each as a
// text of JSON.
func (in *awsInput) readPriceList(value element) error {
	return value.each(func(value element) error {
		var text string
		if err := value.read(&text); err != nil {
			return err
		}
		var entry struct {
			Product awsProduct `json:"product"`
			Terms   struct{ OnDemand map[string]awsTerm }
			Date    string `json:"publicationDate"`
		}
		if err := json.Unmarshal([]byte(text), &entry); err != nil {
			return value.errorf("expected a text of JSON with a product and its terms: %w", err)
		}
		if _, err := time.Parse(time.RFC3339, entry.Date); err == nil {
			in.setDate(entry.Date)
		}
		if !entry.Product.isNode() {
			return nil
		}
		return in.addPrice(value, &entry.Product, entry.Terms.OnDemand)
	})
}

// addPrice adds the price of a product. A price of 0 is that of products which are not sold.
func (in *awsInput) addPrice(value element, p *awsProduct, terms map[string]awsTerm) error {
	region, name := p.Attributes.RegionCode, p.Attributes.InstanceType
	where := fmt.Sprintf("%s (%s)", value, name)
	for _, term := range slices.Sorted(maps.Keys(terms)) {
		for _, dimension := range terms[term].PriceDimensions {
			if dimension.Unit != "Hrs" {
				return fmt.Errorf("%s: expected a price in the unit Hrs, found %q", where, dimension.Unit)
			}
			if len(dimension.PricePerUnit) != 1 {
				return fmt.Errorf("%s: expected pricePerUnit in one currency, found %d", where, len(dimension.PricePerUnit))
			}
			for currency, text := range dimension.PricePerUnit {
				if err := in.setCurrency(where, currency); err != nil {
					return err
				}
				price, err := parsePrice(where, text)
				if err != nil {
					return err
				}
				if price.IsZero() {
					continue
				}
				if other, known := in.prices[region][name]; known && !other.Equal(price) {
					return fmt.Errorf("%s: two prices in %s: %s and %s, expected one", where, region, other, price)
				}
				if in.prices[region] == nil {
					in.prices[region] = map[string]decimal.Decimal{}
				}
				in.prices[region][name] = price
			}
		}
	}
	return nil
}
