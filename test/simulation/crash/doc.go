// SPDX-License-Identifier: Apache-2.0

// Package crash searches for harmful crashes, stale caches and missed events, as Sieve and Anvil do: exhaustively, in
// memory, one request at a time.
//
// It runs the operator's own code, its CloudProvider and all its reconcilers that write anything but the status of a
// catalog, and Karpenter core's own controllers that launch, register and end claims and that drain and end Nodes. They are registered with a manager as in
// production (manager_test.go), which does not start them. Each change in a cache is passed to the event handlers and
// predicates of their watches (watches_test.go). Each controller has its queue and is called, on a fake clock, after an
// event, an error or a requested time. They all read from caches and run in one process, which can end at any write. Around
// them are an API server that remembers every version of every object, and peers that see the actual state unless a mode
// changes that: a user, the Pods that need a number of claims, Cluster API's controllers of the Cluster,
// MachineDeployments, MachineSets (test/harness/model), MachinePools and Machines, and an infrastructure.
//
// A scenario runs over MachineDeployments, and over MachinePools whose infrastructure provider decides as test/harness/model
// does: a strict one and, in scenarios that mark Machines for deletion, one like Azure's. That provider knows its
// instances, and sees replicas and annotations late in modes with late caches or events. It is an assumption that its
// delay is shorter than what the operator waits for it (docs/design/machinepools.md).
//
// TestEveryControllerIsKnown compares the controllers of production with those that are driven, and says why others are
// not.
//
// A scenario is run once without any disturbance, and all requests of the process are recorded. Then it is run again
//
//   - for each write that changed something, and each read from the API server, with each fault: a crash before it, a
//     crash after it, a conflict, an error, an error although it was applied, a timeout after which the server applies
//     it when others have written, or a process that continues while another one leads, and sees no changes any longer,
//     or none of the workload cluster (plan_test.go). After a crash, a fresh process starts immediately or much later.
//   - with each mode and seed (mode_test.go): caches that lag behind, each kind independently, and a process that
//     sometimes ends and whose successor sees an older state; events that arrive late, several as one; caches of a new
//     process that stay old; provider IDs that are used again; Cluster API's controllers with caches that lag behind,
//     except for their own writes; faults at any request; outages of the API server of one of the clusters, after which
//     the watches of the process and of the provider come back one by one, while the other cluster goes on; and these
//     together. In two modes the clock of the operator's machine is set by a minute or an hour: while the process runs,
//     or also while it ends or crashes, and the next one, which cannot know that, may have a machine whose clock is right.
//
// One run of the tests does a part of these, and one with ROTATION=all does all (test/harness/rotation).
//
// After every change the invariants of the design are checked; for pools also that the provider removes only marked
// Machines, because otherwise it could remove any. At the end, the search checks that nothing is written any longer,
// not even by a fresh process, that the state is that of the run without disturbance, and that no additional objects
// were created or deleted. A loss that cannot be excluded is tolerated only if the run shows the mechanism that causes
// it (loss_test.go). When a clock was set, a claim can fail early or a Machine be deleted before it has a Node. Then the
// state at the end can differ, but each additional object must have such a cause (jumps_test.go).
//
// TestSearchHasTeeth plants bugs in the clients, the watches and the queues of the operator, and the search must find
// each of them by an invariant (mutants_test.go).
//
// A failure prints what happened, and the run can be repeated alone:
//
//	ROTATION=all go test ./test/simulation/crash -run 'TestCrashSearch/MachinePool$/^replace$/crash_before=7$'
package crash
