// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
)

// setOpen sets which Machines the plan treats as linked, because their links are being written: those of claims that
// still exist and have no Machine. The link to another claim will not be written, or is removed again.
func (s *Snapshot) setOpen(open map[types.UID]types.UID) {
	if len(open) == 0 {
		return
	}
	claims := lo.Invert(lo.PickBy(open, func(uid, _ types.UID) bool {
		claim := s.Claim(uid)
		return claim != nil && claim.DeletionTimestamp.IsZero() && lo.EveryBy(s.LinkedTo(uid), lifecycle.IsLeaving)
	}))
	s.open = make(map[string]types.UID, len(claims))
	for name, machine := range s.Machines {
		if claim, found := claims[machine.UID]; found {
			s.open[name] = claim
		}
	}
}

// claimOf returns the claim that a Machine is linked to, or is about to be; empty if it is neither.
func (s *Snapshot) claimOf(machine *clusterv1.Machine) types.UID {
	if uid := lifecycle.ClaimUID(machine); uid != "" {
		return uid
	}
	return s.open[machine.Name]
}

// setSettled sets the claims whose link is neither being written nor planned.
func (s *Snapshot) setSettled() {
	linking := sets.New(lo.Values(s.open)...)
	for _, link := range s.Plan.Links {
		linking.Insert(link.Claim.UID)
	}
	s.Settled = make([]*karpv1.NodeClaim, 0, len(s.Claims))
	for i := range s.Claims {
		if !linking.Has(s.Claims[i].UID) {
			s.Settled = append(s.Settled, &s.Claims[i])
		}
	}
}
