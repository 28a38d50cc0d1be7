// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	"github.com/samber/lo"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// DueIn returns the time after which time alone changes the plan, such as a launchTimeoutSeconds or a
// spareTTLSeconds that ends. It is zero if no such time comes.
func (s *Snapshot) DueIn() time.Duration {
	var soonest time.Duration
	at := func(due time.Time) { soonest = requeue.Soonest(soonest, due.Sub(s.Now)) }
	for _, due := range s.due {
		at(due)
	}
	for _, machine := range s.Machines {
		if lifecycle.IsLeaving(machine) {
			continue
		}
		if !s.mayHavePods(machine) {
			since := s.startedAt(machine)
			at(since.Add(s.progressTimeout()))
			at(since.Add(s.Settings.LaunchTimeout))
		}
		if lifecycle.ClaimUID(machine) == "" {
			at(lo.Latest(lifecycle.SpareSince(machine), s.UpSince).Add(s.Settings.SpareTTL))
		}
	}
	if len(s.exceeding) > 0 {
		// No event shows that another claim no longer counts toward the limit.
		at(s.Now.Add(limitPoll))
	}
	for i := range s.Claims {
		s.claimDue(&s.Claims[i], at)
	}
	return soonest
}

// claimDue calls at for the times at which time alone changes what a claim waits for.
func (s *Snapshot) claimDue(claim *karpv1.NodeClaim, at func(time.Time)) {
	if !nodeclaims.NeedsMachine(claim) {
		return
	}
	if s.Waits(claim) {
		since := s.waitsSince(claim)
		at(since.Add(s.progressTimeout()))
		at(since.Add(s.Settings.LaunchTimeout))
	}
	if nodeclaims.IsStalled(claim) {
		// No event shows that a provider acts on an object again.
		at(s.Now.Add(s.times().NoProgress))
		return
	}
	if machine := s.Machines[s.Plan.Served[claim.UID]]; machine != nil && machine.Spec.ProviderID == "" {
		at(s.launchSince(claim, machine).Add(s.Settings.LaunchTimeout))
	}
}
