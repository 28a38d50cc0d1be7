// SPDX-License-Identifier: Apache-2.0

// Package vsphere simulates what Cluster API Provider vSphere needs besides a management cluster: a vCenter, which is govmomi's
// simulator with the inventory of the sample for vSphere, and a pool of addresses for its virtual machines.
//
// The provider reaches the vCenter by the name in the sample, through a proxy.
package vsphere
