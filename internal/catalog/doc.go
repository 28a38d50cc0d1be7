// SPDX-License-Identifier: Apache-2.0

// Package catalog turns templates into what Karpenter schedules with: instance
// types with capacity, overhead, requirements and priced offerings.
//
// Build is pure. Catalog keeps its result for as long as a template does not
// change, so that asking for instance types costs neither work nor an API call.
package catalog
