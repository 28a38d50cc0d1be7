// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"
	"time"

	"github.com/samber/lo"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// DueIn returns the time after which time alone changes the plan, such as a launchTimeout or a
// spareTTL that ends. It is zero if no such time comes.
func (s *Snapshot) DueIn() time.Duration {
	due := slices.Clone(s.due)
	for _, machine := range s.Machines {
		if lifecycle.IsLeaving(machine) || s.mayHavePods(machine) && lifecycle.ClaimUID(machine) != "" {
			continue
		}
		if !s.mayHavePods(machine) {
			due = append(due, startedAt(machine).Add(s.progressTimeout()), startedAt(machine).Add(s.Settings.LaunchTimeout))
		}
		if lifecycle.ClaimUID(machine) == "" {
			due = append(due, lifecycle.SpareSince(machine).Add(s.Settings.SpareTTL))
		}
	}
	if len(s.exceeding) > 0 {
		// No event shows that another claim no longer counts toward the limit.
		due = append(due, s.Now.Add(limitPoll))
	}
	for i := range s.Claims {
		due = append(due, s.claimDue(&s.Claims[i])...)
	}
	return requeue.Soonest(lo.Map(due, func(at time.Time, _ int) time.Duration { return at.Sub(s.Now) })...)
}

// claimDue returns the times at which time alone changes what a claim waits for.
func (s *Snapshot) claimDue(claim *karpv1.NodeClaim) (due []time.Time) {
	if s.Waits(claim) {
		due = append(due, s.waitsSince(claim).Add(s.progressTimeout()), s.waitsSince(claim).Add(s.Settings.LaunchTimeout))
	}
	machine := s.Machines[s.Plan.Served[claim.UID]]
	switch {
	case !NeedsMachine(claim):
	case IsStalled(claim):
		// No event shows that a provider acts on an object again.
		due = append(due, s.Now.Add(s.times().NoProgress))
	case machine != nil && machine.Spec.ProviderID == "":
		due = append(due, s.launchSince(claim, machine).Add(s.Settings.LaunchTimeout))
	}
	return due
}
