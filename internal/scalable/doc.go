// SPDX-License-Identifier: Apache-2.0

// Package scalable has the scalable resources: one MachineDeployment or MachinePool for each
// offering of a template in use. The interface Kind has the differences between the two.
//
// A scalable resource is generated (see package generate) or adopted. If a user edits the
// Machine template of a generated MachineDeployment, it gets a second MachineSet, and each
// MachineSet gets its own replicas: see planner.MachineSets.
//
// Several Clusters can share a namespace. A generated object belongs to one of them, by its
// labels and by the hash in its name (see ownership.go).
package scalable
