// SPDX-License-Identifier: Apache-2.0

// Package corestate keeps Karpenter core's cluster state correct when a NodeClaim's
// provider ID changes from its provisional one to its Machine's. Setup runs its
// controller instead of core's of the same name, which it calls. It stores nothing:
// after a restart core's state begins with the provider IDs that NodeClaims have by then.
package corestate
