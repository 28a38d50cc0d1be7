// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/inventory"
)

// Key identifies an offering of one template.
type Key struct {
	InstanceType string
	// Zone is empty for infrastructure without zones.
	Zone         string
	CapacityType string
}

// String returns the key for messages, such as m5.large/us-east-1a/spot.
func (k Key) String() string {
	return strings.Join(lo.Compact([]string{k.InstanceType, k.Zone, k.CapacityType}), "/")
}

// Unavailable returns the mark of an offering that cannot be launched.
func (k Key) Unavailable(reason, message string) v1alpha1.UnavailableOffering {
	return v1alpha1.UnavailableOffering{InstanceType: k.InstanceType, Zone: k.Zone, CapacityType: k.CapacityType, Reason: reason, Message: message}
}

// KeyOfMark returns the offering that is marked as unavailable.
func KeyOfMark(mark v1alpha1.UnavailableOffering) Key {
	return Key{InstanceType: mark.InstanceType, Zone: mark.Zone, CapacityType: mark.CapacityType}
}

// KeyOfLimited returns the offering whose use is counted.
func KeyOfLimited(limited v1alpha1.LimitedOffering) Key {
	return Key{InstanceType: limited.InstanceType, Zone: limited.Zone, CapacityType: limited.CapacityType}
}

// Type is an instance type, joined from all sources of a template.
type Type struct {
	Name string
	// Capacity is what a Node reports, before any kubelet setting.
	Capacity corev1.ResourceList
	// Labels are the labels of Nodes, without instance type, zone and capacity type.
	Labels map[string]string
	// VolumeAttachmentLimits are how many volumes of each CSI driver can be attached to a Node, by the name of the
	// driver.
	VolumeAttachmentLimits map[string]int32
	// Devices are those that DRA drivers publish for a Node.
	Devices   Devices
	Offerings []Offering

	// Allocatable is that of the NodeClaims, for a type that only NodeClaims have.
	Allocatable corev1.ResourceList
}

// Offering is one way to buy a Type.
type Offering struct {
	Zone, CapacityType string
	// FailureDomain is that of the Machines. Usually it has the name of the zone.
	FailureDomain string
	// Price is what is paid for one hour, which is what Karpenter compares. ListPrice is the price before adjustments, and
	// both are in Currency, which is empty if it is not known.
	Price, ListPrice float64
	Currency         string
	// MaxMachines is how many Machines NodeClaims can have of it; nil for no limit.
	MaxMachines *int32
	// Limiter is what sets MaxMachines, if the NodeClaims of several templates count.
	Limiter *Limiter
	// Reservation is set for capacity type reserved.
	Reservation *v1alpha1.Reservation
	// Pools are where its capacity is counted; none if it is not.
	Pools []inventory.Pool
	// InfrastructureRef is used without changes; nil for the template's base with its
	// patches.
	InfrastructureRef *clusterv1.ContractVersionedObjectReference
	// MachineDeployment names an existing one that creates the Machines; empty if one is
	// generated.
	MachineDeployment string
	// Taints are those with which Nodes join and that keep Pods away.
	Taints []Taint
	// Paused reports whether MachineDeployment is paused, so that it cannot be chosen now.
	Paused bool

	// Retired reports whether the offering is only listed for NodeClaims that have it.
	Retired bool
}

// Limiter is an object with offerings that several templates can have: an InstanceTypeCatalog, or an
// infrastructure template that discovery has found.
type Limiter struct {
	// Catalog is the name of the InstanceTypeCatalog; empty for an infrastructure template.
	Catalog string
	// APIGroup, Kind and Labels are those of the infrastructure template.
	APIGroup, Kind string
	Labels         map[string]string
}

// KeyOf returns the key of one of the type's offerings.
func (t *Type) KeyOf(offering *Offering) Key {
	return Key{InstanceType: t.Name, Zone: offering.Zone, CapacityType: offering.CapacityType}
}

// Find returns the offering of a zone and capacity type; nil if the type has none.
func (t *Type) Find(zone, capacityType string) *Offering {
	for i := range t.Offerings {
		if o := &t.Offerings[i]; o.Zone == zone && o.CapacityType == capacityType {
			return o
		}
	}
	return nil
}

// Problem is why an instance type or offering of a template or its discovery is not
// offered, and how to fix it.
type Problem struct {
	// Reason is one of the reasons of conditions in v1alpha1.
	Reason string
	// Message names the object, what was expected and what was found.
	Message string
}
