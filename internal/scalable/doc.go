// SPDX-License-Identifier: Apache-2.0

// Package scalable generates the scalable resources, one MachineDeployment or
// MachinePool for each offering of a template in use, observes them, and removes single
// Machines from them. What differs between the two is behind the interface Kind.
//
// Of a generated resource only replicas and annotations are ever changed. Its name ends in a
// hash of all that shapes its Machines, so a changed template leads to another
// resource; what Cluster API would roll out (core/reconcilers/machinedeployment/
// mdutil/util.go) is thus never touched. A user who edits that gives a MachineDeployment
// a second MachineSet: each then gets its own replicas, see link.MachineSets.
//
// Several Clusters can share a namespace. What is generated belongs to one of them, by its
// labels and by the hash in its name (see ownership.go).
package scalable
