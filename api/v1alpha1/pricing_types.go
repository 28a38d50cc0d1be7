// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Pricing computes prices for one hour.
type Pricing struct {
	// cpu is the price of one CPU, for instance types without a price.
	// Default: "0". Example: "0.03".
	// +optional
	CPU Decimal `json:"cpu,omitempty"`

	// memory is the price of one GiB of memory, for instance types without a price.
	// Default: "0". Example: "0.004".
	// +optional
	Memory Decimal `json:"memory,omitempty"`

	// gpu is the price of one GPU of any vendor, for instance types without a price.
	// Default: "0". Example: "0.5".
	// +optional
	GPU Decimal `json:"gpu,omitempty"`

	// factors are multiplied with the price of an instance type, set or computed, by
	// capacity type. They do not apply to an offering that sets its own price. Default: 1
	// for on-demand and spot, and 0.0000001 for reserved: a reservation is paid for
	// already, so Karpenter moves Nodes to it and not away from it, and of two
	// reservations it prefers the one for the smaller machine.
	// Example: [{capacityType: spot, factor: "0.35"}].
	// +optional
	// +listType=map
	// +listMapKey=capacityType
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Factors []PriceFactor `json:"factors,omitempty"`
}

// CatalogPricing computes the prices of a catalog for one hour: the list prices that its instance types do
// not set, and what is paid in the end. docs/guides/prices.md has the formula.
type CatalogPricing struct {
	Pricing `json:",inline"`

	// power is what power costs, for instance types that set hardware.watts.
	// Default: none; then power costs nothing. Example: {kilowattHour: "0.28", factor: "1.4"}.
	// +optional
	Power *PowerPricing `json:"power,omitempty"`

	// conversion converts all list prices of the catalog to another currency, in which
	// surcharges are. Default: none; then prices are in the currency of the catalog.
	// Example: {currency: EUR, rate: "0.92"}.
	// +optional
	Conversion *CurrencyConversion `json:"conversion,omitempty"`

	// adjustments are how what is paid differs from the list prices: at most 64. All that
	// select an offering apply to it, and their order does not matter: price = list price
	// × rate of conversion × (1 − discountPercent / 100) of each × the factor of each
	// interruption + surchargePerHour of each. Nodes do not drift when they change.
	// Default: none. Example: [{name: licenses, surchargePerHour: "0.05"}].
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Adjustments []PriceAdjustment `json:"adjustments,omitempty"`
}

// PowerPricing is what power costs.
type PowerPricing struct {
	// kilowattHour is the price of one kilowatt hour, in the currency of the catalog.
	// Example: "0.28".
	// +required
	KilowattHour Decimal `json:"kilowattHour,omitempty"`

	// factor is what watts are multiplied with for cooling and the supply of power: the
	// power usage effectiveness (PUE) of the data center. Default: "1". Example: "1.4".
	// +optional
	Factor Decimal `json:"factor,omitempty"`
}

// CurrencyConversion converts prices to another currency.
type CurrencyConversion struct {
	// currency of the converted prices, as in ISO 4217. All offerings of a cluster must
	// have the same. Example: EUR.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=3
	// +kubebuilder:validation:Pattern=`^[A-Z]{3}$`
	Currency string `json:"currency,omitempty"`

	// rate is how much of this currency one unit of the currency of the catalog is: more
	// than 0. Example: "0.92".
	// +required
	// +kubebuilder:validation:XValidation:rule="double(self) > 0.0",message="rate must be more than 0: with 0, all machines would be free"
	Rate Decimal `json:"rate,omitempty"`
}

// PriceAdjustment is a difference between list prices and what is paid.
//
// +kubebuilder:validation:XValidation:rule="has(self.discountPercent) || has(self.surchargePerHour) || has(self.interruption)",message="discountPercent, surchargePerHour or interruption must be set: without them, the adjustment changes no price"
type PriceAdjustment struct {
	// name identifies the adjustment in conditions. Several field managers can own one
	// adjustment each. Example: savings-plan.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// requirements select offerings of the catalog by the labels that their Nodes get, such
	// as karpenter.cluster.x-k8s.io/instance-family, node.kubernetes.io/instance-type,
	// topology.kubernetes.io/zone and karpenter.sh/capacity-type. An offering must meet all
	// of them: at most 16. Default: none; then the adjustment applies to all offerings.
	// Example: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Requirements []OfferingRequirement `json:"requirements,omitempty"`

	// discountPercent is how much less is paid, from 0 to 100 percent: a discount on a
	// family, or a commitment such as a savings plan. Default: "0". Example: "28".
	// +optional
	DiscountPercent Percent `json:"discountPercent,omitempty"`

	// surchargePerHour is what each Node costs in addition for one hour, such as for
	// licenses or support: a decimal number that is not negative, in the currency of
	// conversion. No discount applies to it. Default: "0". Example: "0.05".
	// +optional
	SurchargePerHour Decimal `json:"surchargePerHour,omitempty"`

	// interruption makes spot offerings more expensive by what their interruptions are
	// expected to cost. It applies to offerings of capacity type spot only.
	// Default: none. Example: {percentPerMonth: "20", costHours: 73}.
	// +optional
	Interruption *PriceOfInterruption `json:"interruption,omitempty"`
}

// PriceOfInterruption is what interruptions of spot machines are expected to cost. Prices are multiplied
// with 1 + percentPerMonth / 100 × costHours / 730, because a month has 730 hours.
type PriceOfInterruption struct {
	// percentPerMonth is how many percent of the machines are interrupted in a month, as
	// clouds publish it: from 0 to 100. Example: "20".
	// +required
	PercentPerMonth Percent `json:"percentPerMonth,omitempty"`

	// costHours is what one interruption costs, in hours for which the machine is paid:
	// work that is lost, and Nodes that wait for Pods. Example: 73.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8760
	CostHours int32 `json:"costHours,omitempty"`
}

// OfferingRequirement is a requirement for the labels of an offering's Nodes, as in a NodePool.
//
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == has(self.values)",message="values must be set for the operators In and NotIn, and for no other",fieldPath=".values"
type OfferingRequirement struct {
	// key of the label. Example: karpenter.cluster.x-k8s.io/instance-family.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	Key string `json:"key,omitempty"`

	// operator is In, NotIn, Exists or DoesNotExist. NotIn also selects offerings without
	// the label. Example: In.
	// +required
	Operator RequirementOperator `json:"operator,omitempty"`

	// values of the label, for In and NotIn: at most 256. Default: none.
	// Example: [m6i, c6i].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Values []LabelValue `json:"values,omitempty"`
}

// RequirementOperator is how the label of an offering is compared with values.
//
// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
type RequirementOperator string

// These are the operators of requirements, as in Kubernetes.
const (
	// RequirementIn selects offerings whose label has one of the values.
	RequirementIn RequirementOperator = "In"
	// RequirementNotIn selects offerings whose label has none of the values, or that lack the label.
	RequirementNotIn RequirementOperator = "NotIn"
	// RequirementExists selects offerings with the label.
	RequirementExists RequirementOperator = "Exists"
	// RequirementDoesNotExist selects offerings without the label.
	RequirementDoesNotExist RequirementOperator = "DoesNotExist"
)

// Percent is a decimal number from 0 to 100, such as 12.5.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
// +kubebuilder:validation:XValidation:rule="double(self) <= 100.0",message="must be at most 100 percent: with more, a price would be negative"
type Percent string

// PriceFactor is the factor for the prices of one capacity type.
type PriceFactor struct {
	// capacityType is on-demand, spot or reserved. Example: spot.
	// +required
	CapacityType CapacityType `json:"capacityType,omitempty"`

	// factor is what the price is multiplied with: a decimal number that is not negative.
	// Example: "0.35".
	// +required
	Factor Decimal `json:"factor,omitempty"`
}
