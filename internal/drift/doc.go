// SPDX-License-Identifier: Apache-2.0

// Package drift decides which NodeClaims are not what their template generates now.
//
// A claim has the hashes of what its Machine was generated from (see generate.Hashes). They are
// compared with those for its offering in the present state of the template. While that state is not
// certain, or Cluster API could not replace a Node, nothing drifts.
package drift
