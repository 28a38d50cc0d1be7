// SPDX-License-Identifier: Apache-2.0

// Package controller simulates the machines of a Cluster API infrastructure provider.
//
// Every SimulatedMachine becomes a real Node in the workload cluster after delays that its spec names, and its Node
// loses its heartbeat when the machine is deleted. All that decides about a step is in the API: when the instance was
// started and when it was told to go are recorded in the status, and jitter and failure hang on the machine's UID. So a
// reconciler that starts anew goes on where the last one stopped, and one that finds nothing due writes nothing.
//
// What a crash between two writes leaves behind:
//   - finalizer written, start not recorded: the instance starts later.
//   - provider ID written, status not: the status follows.
//   - Node created, its name not recorded: the Node is found again by its name and provider ID.
//   - instances of a pool made or removed, its status not: the instances are looked at again.
//   - termination recorded, heartbeat still there: it is taken away at the next reconcile.
package controller
