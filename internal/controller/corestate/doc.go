// SPDX-License-Identifier: Apache-2.0

// Package corestate keeps Karpenter core's cluster state correct when a NodeClaim's
// provider ID changes from its provisional one to its Machine's. Setup runs its two
// controllers instead of core's controllers with the same names, which they call:
//
//   - Provisioner moves the counts of buffer Pods to the new ID.
//   - NodeClaims removes the node that core keeps under the provisional ID.
//
// NodeReader lets core restart the Nodes of templates with remediation, and replace the others. Core's controller of Nodes
// reads from it.
//
// All other state that core keeps by provider ID either follows the change or is not used
// before it: docs/design/provider-ids.md lists it.
//
// Both correct core's memory after each change by core, from that memory and the cache.
// They store nothing: after a restart, core's state begins with the provider IDs that
// NodeClaims have then.
package corestate
