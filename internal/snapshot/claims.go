// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// setClaims sets what the claims show.
func (s *Snapshot) setClaims(ctx context.Context, clusters *clients.Clusters, known *catalog.Catalog) error {
	exceeding, err := s.exceeding(ctx, clusters, known)
	if err != nil {
		return err
	}
	s.State.Claims = make([]planner.Claim, len(s.Claims))
	for i := range s.Claims {
		s.State.Claims[i] = ClaimOf(&s.Claims[i])
		s.State.Claims[i].OverLimit = exceeding.Has(s.Claims[i].UID)
	}
	return nil
}

// exceeding returns the claims that exceed a limit. The oldest claims of all resources of the template get Machines.
func (s *Snapshot) exceeding(ctx context.Context, clusters *clients.Clusters, known *catalog.Catalog) (sets.Set[types.UID], error) {
	if s.Template == nil || len(s.Claims) == 0 {
		return nil, nil
	}
	limits, err := known.Limits(ctx, s.Template)
	if err != nil || limits.None() {
		return nil, err
	}
	claims, err := catalog.ClaimsThatCount(ctx, clusters, s.Template, limits)
	if err != nil {
		return nil, err
	}
	return catalog.Exceeding(claims, limits), nil
}

// ClaimOf returns what a claim itself shows.
func ClaimOf(claim *karpv1.NodeClaim) planner.Claim {
	read := planner.Claim{
		UID: claim.UID, Name: claim.Name, Created: claim.CreationTimestamp.Time, WaitsSince: claim.CreationTimestamp.Time,
		RegistersSince: claim.CreationTimestamp.Time,
		ProviderID:     claim.Status.ProviderID,
		Hash:           claim.Annotations[v1alpha1.TemplateHashAnnotation],
		NeedsMachine:   nodeclaims.NeedsMachine(claim),
		Registered:     nodeclaims.IsRegistered(claim),
		Stalled:        nodeclaims.IsStalled(claim),
	}
	if claim.DeletionTimestamp != nil {
		read.Leaving, read.DeletedAt = true, claim.DeletionTimestamp.Time
	}
	for i := range claim.Status.Conditions {
		condition := &claim.Status.Conditions[i]
		at := condition.LastTransitionTime.Time
		switch condition.Type {
		case karpv1.ConditionTypeLaunched:
			read.WaitsSince = lo.Latest(read.WaitsSince, at)
		case karpv1.ConditionTypeRegistered:
			read.RegistersSince = at // core counts from then on
		case v1alpha1.ConditionMachineReady:
			read.Ready = planner.Condition{Status: condition.Status, Reason: condition.Reason, Message: condition.Message}
		case v1alpha1.ConditionMachineAvailable:
			read.Available = planner.Condition{Status: condition.Status, Reason: condition.Reason, Message: condition.Message}
			read.WaitsSince = lo.Latest(read.WaitsSince, at)
			if condition.Reason == v1alpha1.ReasonResumed {
				read.ResumedAt = at
			}
			if nodeclaims.IsRejected(claim) {
				read.Rejected = condition.Message
			}
		}
	}
	return read
}

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
