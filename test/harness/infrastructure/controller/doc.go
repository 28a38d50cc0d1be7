// SPDX-License-Identifier: Apache-2.0

// Package controller simulates the machines of a Cluster API infrastructure provider.
//
// Every SimulatedMachine becomes a real Node in the workload cluster after delays from its spec, and the heartbeat of
// its Node stops when the machine is deleted. Everything that decides about a step is in the API: the status has the
// times when the instance was started and when its termination began, and jitter and failure depend on the machine's
// UID. So a restarted reconciler continues where the last one stopped, and one that finds nothing due writes nothing.
//
// What a crash between two writes leaves behind:
//   - finalizer written, start not recorded: the instance starts later.
//   - provider ID written, status not: the status is written later.
//   - Node created, its name not recorded: the Node is found again by its name and provider ID.
//   - instances of a pool created or removed, its status not written: the instances are listed again.
//   - termination recorded, heartbeat not stopped: the next reconcile stops it.
package controller
