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
// every object, and peers that always see what there is: a user, the Pods that need
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
// A scenario is run once without any disturbance, and all writes of the process are
// noted. Then it is run again
//
//   - for each write that changed something, and each fault: a crash before it, a
//     crash after it, a conflict, an error although it was applied; followed by a
//     fresh process at once, by one much later, or by none (plan_test.go).
//   - with caches that lag behind, each kind for itself, and with a process that ends
//     now and then and whose successor sees an older state (stale=SEED).
//   - with events that come late and several as one, and peers that act when they
//     like (withheld=SEED).
//
// After every change the invariants of the design are checked; for pools also that the
// provider removes only what was chosen, as it could else be any. In the end it is checked that
// nothing is written any more, by a fresh process either, that the state is that of
// the run without disturbance, and that no more objects were made or deleted. Where
// more may be made, the scenario says so, and why.
//
// A failure prints what happened, and can be run alone:
//
//	go test ./test/crash -run 'TestCrashSearch/MachinePool$/^replace$/crash_before=7$'
package crash
