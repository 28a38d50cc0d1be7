// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
)

// indexes find the claims and Machines of a snapshot without a loop over all of them. With such loops,
// a reconcile of n claims would take n² steps.
type indexes struct {
	// claims has the claims by UID.
	claims map[types.UID]*karpv1.NodeClaim
	// linked has the Machines that are linked to each claim.
	linked map[types.UID][]*clusterv1.Machine
}

func (s *Snapshot) index() *indexes {
	if s.indexes != nil {
		return s.indexes
	}
	s.indexes = &indexes{
		claims: make(map[types.UID]*karpv1.NodeClaim, len(s.Claims)),
		linked: make(map[types.UID][]*clusterv1.Machine, len(s.Machines)),
	}
	for i := range s.Claims {
		s.indexes.claims[s.Claims[i].UID] = &s.Claims[i]
	}
	for _, machine := range s.Machines {
		if uid := lifecycle.ClaimUID(machine); uid != "" {
			s.indexes.linked[uid] = append(s.indexes.linked[uid], machine)
		}
	}
	return s.indexes
}

// Claim returns the claim with a UID; nil if none of this resource has it.
func (s *Snapshot) Claim(uid types.UID) *karpv1.NodeClaim { return s.index().claims[uid] }

// LinkedTo returns the Machines that are linked to a claim, those that are leaving included.
func (s *Snapshot) LinkedTo(claim types.UID) []*clusterv1.Machine { return s.index().linked[claim] }
