// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Key identifies an offering of one template.
type Key struct {
	InstanceType string
	// Zone is empty for infrastructure without zones.
	Zone         string
	CapacityType string
}

// String returns the key for messages, as m5.large/us-east-1a/spot.
func (k Key) String() string {
	return strings.Join(lo.Compact([]string{k.InstanceType, k.Zone, k.CapacityType}), "/")
}

// Type is an instance type as all sources of a template together describe it.
type Type struct {
	Name string
	// Capacity is what a node reports, before any kubelet setting.
	Capacity corev1.ResourceList
	// Labels that nodes have beside instance type, zone and capacity type.
	Labels    map[string]string
	Offerings []Offering

	// Allocatable is set for a type that only NodeClaims have: what theirs is.
	Allocatable corev1.ResourceList
}

// Offering is one way to buy a Type.
type Offering struct {
	Zone, CapacityType string
	// FailureDomain that the machines are made in; of the same name as the zone, mostly.
	FailureDomain string
	Price         float64
	// MaxMachines is how many Machines NodeClaims may have of it; nil: no limit.
	MaxMachines *int32
	// Reservation is set for capacity type reserved.
	Reservation *v1alpha1.Reservation
	// InfrastructureRef is used as it is; nil: the template's base, with its patches.
	InfrastructureRef *clusterv1.ContractVersionedObjectReference
	// MachineDeployment names an existing one that makes the Machines; empty: one is
	// generated.
	MachineDeployment string
	// Paused tells that MachineDeployment is paused: it is not to be chosen for now.
	Paused bool

	// Retired tells that the offering is listed for its NodeClaims only.
	Retired bool
}

// KeyOf returns the key of one of the type's offerings.
func (t *Type) KeyOf(offering *Offering) Key {
	return Key{InstanceType: t.Name, Zone: offering.Zone, CapacityType: offering.CapacityType}
}

// Find returns an offering; nil if the type has none of that zone and capacity type.
func (t *Type) Find(zone, capacityType string) *Offering {
	for i := range t.Offerings {
		if o := &t.Offerings[i]; o.Zone == zone && o.CapacityType == capacityType {
			return o
		}
	}
	return nil
}

// Problem says why something that a template or its discovery describes is not
// offered, and what to mend.
type Problem struct {
	// Reason is one of v1alpha1's reasons of conditions.
	Reason string
	// Message names the object, what was expected and what was found.
	Message string
}
