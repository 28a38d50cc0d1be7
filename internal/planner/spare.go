// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"time"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/internal/failure"
)

const (
	// karpenterGivesUp is how long Karpenter core waits until the Node of a claim has registered
	// (karpenter: pkg/controllers/nodeclaim/lifecycle/liveness.go, registrationTimeout), less what the
	// clocks of core and of the API server may differ by.
	karpenterGivesUp = 15*time.Minute - time.Minute
	// justProvisioned is how long an instance is too young for a user to know that no Node joins.
	justProvisioned = time.Minute
	// joins is for how long an instance must have been provisioned until a missing Node is evidence against its offering.
	joins = 5 * time.Minute
)

// WhyNotSpare returns why the Machine of a claim that is being deleted cannot serve the next claim: it has a Node, cannot
// become one, or was given up. It is empty if it can. CloudProvider.Delete marks the Machine or keeps it accordingly.
func (s *State) WhyNotSpare(claim Claim, machine Machine) Reason {
	switch {
	case machine.HasNode:
		return HadPods
	case machine.Leaving:
		return IsLeaving
	case s.Durations.SpareTTL == 0:
		return SpareTTLEnds
	case s.givenUp(claim, machine):
		return GivenUp
	}
	return s.unfit(machine)
}

// givenUp reports whether a claim was deleted when nothing but the Node of its Machine was missing, and
// before Karpenter gave up on it. Core does not do that by itself, so a user does not want this machine.
// Its instance can be lost: vSphere's provider, for example, reports an instance that disappears before it
// has a Node only in an object that neither the Machine nor its infrastructure object mirrors
// (cluster-api-provider-vsphere: pkg/services/govmomi/service.go, NotFoundByBIOSUUIDReason).
//
// Karpenter also gives up on slow hardware, whose instance can have just been provisioned. While the
// Cluster is paused or cannot be reached, a Node cannot join, so the instance counts as provisioned from
// the time on from which Cluster API could act on the Machine if that is later.
func (s *State) givenUp(claim Claim, machine Machine) bool {
	if machine.ProviderID == "" || !claim.Leaving || machine.ProvisionedAt.IsZero() {
		return false
	}
	return claim.DeletedAt.Sub(claim.RegistersSince) < karpenterGivesUp &&
		claim.DeletedAt.Sub(lo.Latest(machine.ProvisionedAt, s.startedAt(machine))) >= justProvisioned
}

// RegistrationFailure returns the failure of a claim that ends because Karpenter gave up on it, and whose Machine has its
// provider ID and no Node; zero if it has none. A Machine that serves the next claim has not failed. CloudProvider.Delete marks
// the offering of the claim.
//
// That the Node is missing is no evidence while nothing acts on the Machine, the Cluster is paused, or a cluster cannot be
// reached.
func (s *State) RegistrationFailure(claim Claim, machine Machine) failure.Failure {
	gaveUp := claim.Leaving && !claim.Registered && claim.DeletedAt.Sub(claim.RegistersSince) >= karpenterGivesUp
	missing := machine.ProviderID != "" && machine.Node == "" && !machine.Leaving && machine.Failure.Kind == "" && machine.Stall.Reason == ""
	if !gaveUp || !missing || s.WhyNotSpare(claim, machine) == "" || s.Now.Before(lo.Latest(machine.ProvisionedAt, s.startedAt(machine)).Add(joins)) {
		return failure.Failure{}
	}
	return failed(RegistrationTimeout, "no Node has joined with the provider ID of Machine %s%s", machine.Name, machine.Infrastructure.problem())
}
