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
package catalog
