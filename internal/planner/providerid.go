// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// provisionalScheme is used by no infrastructure, so a provisional ID is never equal to the provider
// ID of a Machine or a Node.
const provisionalScheme = "nodeclaim://"

// ProvisionalID returns the provider ID that a claim has until its Machine has one. It completes
// Karpenter's cluster state at once. Without it, the whole cluster would wait for the slowest
// machine (karpenter: pkg/controllers/state/cluster.go, Synced). It is unique, because Karpenter
// fails if two claims have one ID.
func ProvisionalID(claim types.UID) string {
	return provisionalScheme + string(claim)
}

// ParseProvisionalID returns the claim of a provisional ID, and false for any other ID.
func ParseProvisionalID(providerID string) (types.UID, bool) {
	uid, ok := strings.CutPrefix(providerID, provisionalScheme)
	return types.UID(uid), ok
}
