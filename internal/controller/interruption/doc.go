// SPDX-License-Identifier: Apache-2.0

// Package interruption replaces Nodes whose instance ends, as soon as a termination handler has set a
// taint or a condition that announces it (package internal/signals). Karpenter then drains the Node
// while the instance still runs.
//
// One reconcile handles all these Nodes, because instances of several offerings of a template often end at
// once, and one write of the template marks all of their offerings. It runs these steps:
//
//  1. interrupted lists the registered Nodes that have a signal, with their NodeClaims. A NodeClaim that
//     is being deleted is not among them: whatever its reason, Karpenter drains the Node already. If
//     several NodeClaims have the provider ID of the Node, its Machine decides, and events report that.
//  2. mark marks the offerings of spot and reserved capacity as unavailable in the status of the
//     template. After a crash, the next reconcile finds the marks and does not repeat them.
//  3. The NodeClaims are deleted, with their UID as precondition. After a crash, the next reconcile deletes
//     those that are left.
//
// Nothing is kept in memory, and a Node without a signal costs nothing.
package interruption
