// SPDX-License-Identifier: Apache-2.0

// Package providerid gives each NodeClaim the provider ID of its Machine, with which Karpenter core
// finds the Node of the claim. It works on one claim at a time, so nothing delays it: neither other
// claims of the same scalable resource, nor links that are being written.
//
// The Machine of a claim is that of planner.ServedBy. The cache is enough: if it lacks a link, the
// event of the link triggers the next reconcile. The controller scalableresource puts the provisional ID
// back when a claim loses its Machine before its Node has registered. A claim whose Node has registered
// keeps its ID. If its Machine gets another one, changed.go reports that.
//
// A reconcile writes at most once, so a crash has no effect but that the next one does the same.
package providerid
