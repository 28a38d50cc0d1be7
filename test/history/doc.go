// SPDX-License-Identifier: Apache-2.0

// Package history follows every write of NodeClaims and Machines, and checks the invariants of docs/design at each one.
// The chaos test calls it.
//
// What is proved depends on where the history comes from. It comes from etcd, as one watch on one range of keys, for
// this is the only complete record:
//
//   - etcd's revisions are the objects' resourceVersions and put all writes of all kinds in one order. Follow misses
//     none: it goes on from the last revision after an error, and fails if etcd has compacted what it has not seen.
//   - The audit log lacks the writes that were on their way when kube-apiserver was killed, and does not say when an
//     object was gone: the answer to the write that removes the last finalizer has the resourceVersion from before.
//   - A watch of kube-apiserver begins with a list after each outage, so states in between are lost, and watches of two
//     kinds are not ordered among each other.
//
// So "this Machine was deleted while that claim was alive" is what the API servers had committed, not what some cache
// showed. etcd does not tell who wrote; for that, package audit looks into the audit log.
//
// Seen, a change's time, is when it reached this process, some milliseconds after the write.
//
// Two things are allowed on purpose, as the design allows them for a while: a second Machine linked to a claim, and a
// link to a claim that has gone a moment ago. They are remarks, and violations only if they are there at the end.
package history
