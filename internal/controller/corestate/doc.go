// SPDX-License-Identifier: Apache-2.0

// Package corestate keeps Karpenter core's cluster state correct when a NodeClaim's
// provider ID changes from its provisional one to its Machine's. Setup runs its two
// controllers instead of core's of the same names, which they call:
//
//   - Provisioner lets the counts of buffer Pods follow the change.
//   - NodeClaims removes what core keeps under the provisional ID.
//
// Whatever else core keeps by provider ID either follows the change or is not used
// before it: docs/design/provider-ids.md lists all of it.
//
// Both correct core's memory from what is in it and in the cache, every time that core
// has changed it. They store nothing: after a restart core's state begins with the
// provider IDs that NodeClaims have by then.
package corestate
