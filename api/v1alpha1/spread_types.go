// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Spread is over which offerings of a capacity type the Nodes of a NodePool are spread.
type Spread struct {
	// capacityType is on-demand or spot. Reservations are paid for already, so they always
	// come first. Example: spot.
	// +required
	CapacityType SpreadCapacityType `json:"capacityType,omitempty"`

	// maxPriceIncreasePercent is by how many percent an offering can cost more than the
	// cheapest one with which it takes turns: from 0 to 300. With 0, Nodes are spread over
	// offerings of the same price, such as the zones of an instance type. Example: 20.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=300
	MaxPriceIncreasePercent *int32 `json:"maxPriceIncreasePercent,omitempty"`
}

// SpreadCapacityType is a capacity type whose offerings can take turns.
//
// +kubebuilder:validation:Enum=on-demand;spot
type SpreadCapacityType string

// SpreadOf returns the entry of spec.spread for a capacity type; nil if there is none.
func (t *KarpenterMachineTemplate) SpreadOf(capacityType string) *Spread {
	for i := range t.Spec.Spread {
		if s := &t.Spec.Spread[i]; string(s.CapacityType) == capacityType {
			return s
		}
	}
	return nil
}
