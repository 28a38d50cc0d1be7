// SPDX-License-Identifier: Apache-2.0

// Package scalable has the scalable resources: one MachineDeployment or MachinePool for each
// offering of a template in use. The interface Kind has the differences between the two.
//
// A scalable resource is generated (see package generate) or adopted. While it has Machines in several MachineSets,
// because a user has changed it, it is suspended: see Suspended and Changed.
//
// Several Clusters can share a namespace. A generated object belongs to one of them, by its
// labels and by the hash in its name (see ownership.go).
package scalable
