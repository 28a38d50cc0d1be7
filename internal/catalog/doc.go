// SPDX-License-Identifier: Apache-2.0

// Package catalog turns templates, what they discover and what their NodeClaims have
// into what Karpenter schedules with: instance types with capacity, overhead,
// requirements and priced offerings.
//
// It works in three steps, all of them pure. Merge joins what all sources say into
// Types. Build gives them Karpenter's form. An overlay of the template's status then
// closes the offerings that cannot be chosen now. Catalog reads what they need from
// the caches and keeps the results until something changes, so that asking for
// instance types costs neither work nor an API call.
//
// Which offerings can be made is the one thing that the overlay does not take from the
// status. The names of thousands of invalid offerings have no room there, so the status
// has their number and examples, and the reconciler of templates hands the full answer
// to the Catalog. It asks again after a restart, and until it knows the answer, Examined
// keeps Create from launching anything of the template. If the status shows that all
// offerings were accepted, which is the common case, there is nothing to wait for.
package catalog
