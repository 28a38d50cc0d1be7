// SPDX-License-Identifier: Apache-2.0

// Package catalog returns the instance types with which Karpenter schedules, with
// capacity, overhead, requirements and priced offerings. It computes them from templates,
// from the objects that templates discover, and from NodeClaims.
//
// This takes three steps, and each is pure. Merge joins all sources into Types. Build
// converts Types into Karpenter's form. An overlay of the template's status then closes
// the offerings that cannot be chosen now. Catalog reads the inputs from the caches and
// keeps the results until something changes, so that repeated calls need neither
// computation nor an API request.
//
// The overlay takes everything from the status except which offerings are valid. The
// status has no room for the names of thousands of invalid offerings, so it has their
// number and examples, and the reconciler of templates hands the full list to the
// Catalog. After a restart the reconciler examines the offerings again; until then,
// Examined keeps Create from launching claims of the template. If the status shows that
// all offerings were accepted, which is the usual case, Create does not wait.
package catalog
