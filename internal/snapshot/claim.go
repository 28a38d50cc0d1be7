// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

// needsMachine reports whether a claim should get a Machine if it has none. A claim that exceeds a
// limit gets none, nor does one of another or of a suspended resource, or of a Cluster that is being deleted.
func (s *Snapshot) needsMachine(claim *karpv1.NodeClaim) bool {
	return nodeclaims.NeedsMachine(claim) && !s.exceeding.Has(claim.UID) && !s.nameTaken(claim) && !s.ClusterDeleting && !s.Suspended
}

// Waits reports whether a claim should get a Machine and has none.
func (s *Snapshot) Waits(claim *karpv1.NodeClaim) bool {
	return s.needsMachine(claim) && s.Plan.Served[claim.UID] == ""
}

// EndsWithoutMachine reports whether a claim has no Machine and never gets one, because its Cluster
// is being deleted.
func (s *Snapshot) EndsWithoutMachine(claim *karpv1.NodeClaim) bool {
	return s.ClusterDeleting && nodeclaims.NeedsMachine(claim) && s.Plan.Served[claim.UID] == ""
}
