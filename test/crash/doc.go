// SPDX-License-Identifier: Apache-2.0

// Package crash searches for crashes, stale caches and missed events that do harm,
// as Sieve and Anvil do: exhaustively, in memory, without a manager and goroutines.
//
// What runs is the operator's own code: its CloudProvider and its reconcilers of
// claims and of scalable resources, and Karpenter core's own controllers that
// launch, register and end claims and that drain and end Nodes. Each has its queue
// and is called, on a fake clock, when an event, an error or a time it asked for
// brings its turn. They all read from caches and live in one process, which can
// end at any write. Around them are an API server that remembers every version of
// every object, and peers that see what there is, unless a mode has it otherwise: a user, the Pods that need
// a number of claims, Cluster API's controllers of MachineDeployments, MachineSets
// (test/model), MachinePools and Machines, and an infrastructure.
//
// A scenario runs over MachineDeployments, and over MachinePools whose infrastructure
// provider decides as test/model has it: a strict one and, where Machines are chosen to
// go, one like Azure's. That provider knows its instances, and sees replicas and
// annotations late where caches or events are late: that it is less late than what the
// operator waits for it is an assumption (docs/design/machinepools.md).
//
// Not here: the reconciler of templates, which cannot be made without a manager.
// Templates are Ready, and an offering becomes available again by time alone.
//
// A scenario is run once without any disturbance, and all requests of the process are
// noted. Then it is run again
//
//   - for each write that changed something, and each read from the API server, with each
//     fault: a crash before it, a crash after it, a conflict, an error, an error although it
//     was applied, a timeout after which the server applies it when others have written, or a
//     process that goes on beside the one that leads from then on, and sees nothing any more
//     or nothing of the workload cluster (plan_test.go). A crash is followed by a fresh
//     process at once, or by one much later.
//   - with each mode and seed (mode_test.go): caches that lag behind, each kind for itself,
//     and a process that ends now and then and whose successor sees an older state; events
//     that come late and several as one; caches of a new process that stay old; provider
//     IDs that are used again; Cluster API's controllers with caches that lag behind, but
//     for their own writes; faults at any request; and all of this together.
//
// One run of the tests does a part of these, and ROTATION=all does all (test/rotation).
//
// After every change the invariants of the design are checked; for pools also that the
// provider removes only what was chosen, as it could else be any. In the end it is checked that
// nothing is written any more, by a fresh process either, that the state is that of
// the run without disturbance, and that no more objects were made or deleted. A loss that
// cannot be excluded is tolerated only if the run shows the mechanism that causes it
// (loss_test.go).
//
// TestSearchHasTeeth plants bugs in the clients that the operator gets, and the search has
// to find each of them by an invariant (mutants_test.go).
//
// A failure prints what happened, and can be run alone:
//
//	ROTATION=all go test ./test/crash -run 'TestCrashSearch/MachinePool$/^replace$/crash_before=7$'
package crash
