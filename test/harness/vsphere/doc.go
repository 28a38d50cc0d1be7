// SPDX-License-Identifier: Apache-2.0

// Package vsphere simulates what Cluster API Provider vSphere needs besides a management cluster: a vCenter, which is govmomi's
// simulator with the inventory of the sample for vSphere, what runs in its virtual machines, and a pool of addresses for them.
//
// The provider reaches the vCenter by the name in the sample, through a proxy.
package vsphere
