// SPDX-License-Identifier: Apache-2.0

// Package history follows every write of NodeClaims and Machines, and checks the invariants of docs/design at each one.
// The chaos test calls it.
//
// The value of the proof depends on the source of the history. The source is etcd, with one watch on one range of keys,
// because only etcd has a complete record:
//
//   - etcd's revisions are the objects' resourceVersions and put all writes of all kinds in one order. Follow misses
//     none: after an error it continues from the last revision, and it fails if etcd has compacted changes that it has
//     not seen.
//   - The audit log lacks the writes that were in progress when kube-apiserver was killed, and does not show when an
//     object was removed: the response to the write that removes the last finalizer has the resourceVersion from
//     before.
//   - A watch of kube-apiserver begins with a list after each outage, so states in between are lost, and there is no
//     order between the watches of two kinds.
//
// So "this Machine was deleted while that claim was alive" refers to what the API servers had committed, not to the
// content of a cache. etcd does not record who wrote; package audit reads that from the audit log.
//
// Change.Seen is when a change reached this process, some milliseconds after the write.
//
// Two states are allowed on purpose, because the design allows them temporarily: a second Machine that is linked to a
// claim, and a link to a claim that was just removed. They are violations only at the end.
package history
