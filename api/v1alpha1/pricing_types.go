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
