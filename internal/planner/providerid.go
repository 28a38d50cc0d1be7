// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// provisionalScheme is no infrastructure's, so that no provisional ID is ever
// equal to the provider ID of a Machine or a Node.
const provisionalScheme = "nodeclaim://"

// ProvisionalID returns the provider ID of a claim until its Machine has one. It
// makes Karpenter's cluster state complete at once, instead of the whole cluster
// waiting for the slowest machine (karpenter: pkg/controllers/state/cluster.go,
// Synced), and it is unique, since two claims with one ID make Karpenter fail.
func ProvisionalID(claim types.UID) string {
	return provisionalScheme + string(claim)
}

// ParseProvisionalID returns the claim of a provisional ID, and false for any other ID.
func ParseProvisionalID(providerID string) (types.UID, bool) {
	uid, ok := strings.CutPrefix(providerID, provisionalScheme)
	return types.UID(uid), ok
}
