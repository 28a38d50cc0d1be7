// SPDX-License-Identifier: Apache-2.0

// Package model has the decisions of Cluster API v1.14 about a MachineDeployment with strategy
// OnDelete and deletion order Newest, as pure functions: how many replicas its MachineSets get
// (usually there is one), how many Machines a MachineSet creates, and which it deletes.
//
// The simulation of plans in internal/planner and the crash search use it; test/integration
// compares it with Cluster API's own reconcilers. The functions decide by what a controller sees,
// which can be older than the actual state.
//
// It does not cover missing templates, pauses, remediation and in-place updates.
//
// MachinePool is what providers do with the replicas of a MachinePool, on which Cluster API itself
// does not act. The simulated infrastructure uses it.
package model
