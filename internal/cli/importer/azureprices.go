// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	"github.com/shopspring/decimal"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// azureItem is a value of Items of the retail prices.
type azureItem struct {
	CurrencyCode     string      `json:"currencyCode"`
	TierMinimumUnits json.Number `json:"tierMinimumUnits"`
	RetailPrice      json.Number `json:"retailPrice"`
	ArmRegionName    string      `json:"armRegionName"`
	EffectiveStart   string      `json:"effectiveStartDate"`
	ProductName      string      `json:"productName"`
	SkuName          string      `json:"skuName"`
	ServiceName      string      `json:"serviceName"`
	UnitOfMeasure    string      `json:"unitOfMeasure"`
	Type             string      `json:"type"`
	ArmSkuName       string      `json:"armSkuName"`
}

type azurePrice struct {
	price decimal.Decimal
	since string
}

// isNode reports whether a price is of Linux machines on demand or as spot. Others are of Windows,
// reservations, low priority, cloud services and dedicated hosts.
func (item *azureItem) isNode() bool {
	other := slices.ContainsFunc([]string{"Windows", "Cloud Services", "Dedicated Host"}, func(name string) bool { return strings.Contains(item.ProductName, name) })
	return item.ArmSkuName != "" && item.Type == "Consumption" && item.ServiceName == "Virtual Machines" && !other &&
		!strings.HasSuffix(item.SkuName, " Low Priority") && strings.Trim(item.TierMinimumUnits.String(), "0.") == ""
}

// readItem reads a price.
func (in *azureInput) readItem(value element) error {
	item := azureItem{}
	if err := value.read(&item); err != nil {
		return err
	}
	if !item.isNode() {
		return nil
	}
	where := fmt.Sprintf("%s (%s)", value, item.ArmSkuName)
	if item.UnitOfMeasure != "1 Hour" {
		return fmt.Errorf("%s: expected unitOfMeasure 1 Hour, found %q", where, item.UnitOfMeasure)
	}
	if err := in.setCurrency(where, item.CurrencyCode); err != nil {
		return err
	}
	price, err := parsePrice(where, item.RetailPrice.String())
	if err != nil || price.IsZero() {
		return err
	}
	in.regions[item.ArmRegionName] = true
	key := [2]string{item.ArmSkuName, lo.Ternary(strings.HasSuffix(item.SkuName, " Spot"), karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand)}
	other, known := in.prices[key]
	if known && other.since == item.EffectiveStart && !other.price.Equal(price) {
		return fmt.Errorf("%s: two prices for %s since %s: %s and %s, expected one", where, key[1], item.EffectiveStart, other.price, price)
	}
	if !known || item.EffectiveStart > other.since {
		in.prices[key] = azurePrice{price, item.EffectiveStart}
	}
	return nil
}
