// SPDX-License-Identifier: Apache-2.0

// Package model has what Cluster API v1.14 decides about a MachineDeployment with
// strategy OnDelete and deletion order Newest, as pure functions: how many replicas
// its MachineSets get, of which there is mostly one, how many Machines that makes, and
// which it deletes.
//
// The simulation of plans in internal/link and the search for harmful crashes decide with
// it; test/integration compares it with Cluster API's own reconcilers. What it
// says is about what a controller sees, which may be older than what there is.
//
// Not in it: a missing template, a pause, remediation and in-place updates.
//
// MachinePool is what providers do with the replicas of a MachinePool, on which
// Cluster API itself does not act. The simulated infrastructure decides with it.
package model
