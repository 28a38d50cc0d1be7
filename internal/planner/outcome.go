// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
)

const (
	// LimitReached is the failure of a claim for which its template, its offering or its reservation has
	// no machine left. Karpenter launches many claims at once, so some can exceed a limit. The oldest
	// claims get Machines.
	LimitReached failure.Kind = v1alpha1.ReasonLimitReached
	// NameTaken is the failure of a claim that names a resource which was generated from something else than its
	// Machine would be. Names have only a part of a hash, so two resources can have one name.
	NameTaken failure.Kind = v1alpha1.ReasonNameTaken
	// LaunchTimeout is the failure of a machine that was not launched within launchTimeoutSeconds.
	LaunchTimeout failure.Kind = v1alpha1.ReasonLaunchTimeout
	// RegistrationTimeout is the failure of a machine whose Node had not joined when Karpenter gave up on its claim.
	RegistrationTimeout failure.Kind = v1alpha1.ReasonRegistrationTimeout
	// ResourceUnusable is the failure of a claim whose scalable resource cannot provide Machines.
	ResourceUnusable failure.Kind = v1alpha1.ReasonScalableResourceUnusable
)

// Outcome is what a plan decides about a claim, except for its Machine.
type Outcome struct {
	// Stall is why the launch of the claim is stalled, if that is reported, and Failure why its machine could not be launched;
	// zero if it is not. One of them at most is not zero.
	Stall   Stall
	Failure failure.Failure
	// Waits is what the Machine of the claim waits for, and differs from what the claim reports; zero if nothing is to be
	// reported. Arrived is the name of its Machine if the claim reports that the Machine waits, and its Node has registered.
	Waits   Wait
	Arrived string
	// Resumes reports whether the claim still reports a stall that has ended.
	Resumes bool
	// Ends reports whether the claim has no Machine and never gets one, because its Cluster is being deleted.
	Ends bool
}

// decideOutcomes decides what becomes of the claims that get no Machine now, and what the others report. It leaves out claims whose link is being
// written or planned: what the cache has of their Machines can be outdated.
func (p *planning) decideOutcomes() {
	for _, link := range p.plan.Links {
		p.plan.Linking.Insert(link.Claim.UID)
	}
	for _, claim := range p.Claims {
		if p.links[claim.UID].open {
			p.plan.Linking.Insert(claim.UID)
		}
		if p.plan.Linking.Has(claim.UID) {
			continue
		}
		stall, since := p.stall(claim)
		outcome := Outcome{Ends: p.ClusterDeleting && claim.NeedsMachine && p.plan.Served[claim.UID] == ""}
		switch {
		case stall == Stall{}:
			outcome.Failure, outcome.Resumes = p.failure(claim), claim.Stalled && p.launches(claim)
		case p.isReportable(claim, stall, since):
			outcome.Stall = stall
		}
		if stall == (Stall{}) && outcome == (Outcome{}) {
			outcome = Outcome{Waits: p.waits(claim), Arrived: p.arrived(claim)}
		}
		if outcome != (Outcome{}) {
			p.plan.Outcomes[claim.UID] = outcome
		}
	}
}

// isReportable reports whether the claim gets the condition that its launch is stalled. If only the missing action shows
// the stall, and Machines progress elsewhere, the controllers are busy, and the claim just waits for its turn. It waits at
// most until silenceTimeout, because one object can be stalled alone. A claim that has the condition keeps it until the
// stall ends.
func (p *planning) isReportable(claim Claim, stall Stall, since time.Time) bool {
	if !stall.Silent || claim.Stalled {
		return true
	}
	at := lo.Earliest(p.ProgressedAt.Add(p.progressTimeout()), since.Add(p.silenceTimeout()))
	p.dueAt(at, MayStall)
	return !p.Now.Before(at)
}

// stall returns why the launch of a claim is stalled, and since when it may be; zero if it is not, or the claim does not
// wait.
func (p *planning) stall(claim Claim) (Stall, time.Time) {
	if !p.launches(claim) || p.overLimit(claim) {
		return Stall{}, time.Time{}
	}
	if machine, served := p.servedBy(claim); served {
		return machine.Stall, p.startedAt(*machine)
	}
	if p.nameTaken(claim) || p.links[claim.UID].any || p.Unusable != "" || p.unasked() && claim.Rejected != "" {
		return Stall{}, time.Time{}
	}
	stall, since := p.Stall, p.waitsSince(claim)
	if stall == (Stall{}) && p.unasked() {
		stall = Silence(fmt.Sprintf("the replicas of %s %s could not be set to %d: see the log of the operator", p.Kind, p.Key, p.plan.Replicas))
	}
	if stall.Reason == v1alpha1.ReasonNoProgress && p.Now.Before(since.Add(p.progressTimeout())) {
		return Stall{}, time.Time{}
	}
	return stall, since
}

// NoProgress returns the stall of a claim for which nothing acts on an object.
func NoProgress(message string) Stall {
	return Stall{Reason: v1alpha1.ReasonNoProgress, Message: message}
}

// Silence returns the same stall if only the missing action shows it.
func Silence(message string) Stall {
	return Stall{Reason: v1alpha1.ReasonNoProgress, Message: message, Silent: true}
}

// failure returns why the machine of a claim whose launch is not stalled could not be launched; zero if it may still be. A claim
// that reports a stall waits.
func (p *planning) failure(claim Claim) failure.Failure {
	if !p.launches(claim) || claim.Stalled {
		return failure.Failure{}
	}
	if p.overLimit(claim) {
		return failed(LimitReached, "the offering has no machine left, because its capacityFrom, its reservation or maxMachines is used up: see the status of KarpenterMachineTemplate %s", p.Template)
	}
	if machine, served := p.servedBy(claim); served {
		return p.failureOf(claim, *machine)
	}
	switch {
	case p.nameTaken(claim):
		return failed(NameTaken, "%s %s was generated from something else than the Machine of this offering would be: use a KarpenterMachineTemplate of another name", p.Kind, p.Name)
	case p.links[claim.UID].any:
		return failure.Failure{} // its Machine is leaving, and it gets another one
	case p.Unusable != "":
		return failed(ResourceUnusable, "%s", p.Unusable)
	case p.Now.Before(p.waitsSince(claim).Add(p.Durations.LaunchTimeout)):
		return failure.Failure{}
	}
	return failed(LaunchTimeout, "Cluster API has created no Machine in %s%s", p.Durations.LaunchTimeout, p.whyNone(claim))
}

// failureOf returns why the Machine of a claim does not become a Node; zero if it may.
func (p *planning) failureOf(claim Claim, machine Machine) failure.Failure {
	if machine.Failure.Kind != "" {
		return machine.Failure
	}
	if machine.ProviderID != "" || p.Now.Before(p.launchSince(claim, machine).Add(p.Durations.LaunchTimeout)) {
		return failure.Failure{}
	}
	return failed(LaunchTimeout, "Machine %s has had no provider ID for %s%s", machine.Name, p.Durations.LaunchTimeout, machine.waitsFor())
}

func failed(kind failure.Kind, format string, args ...any) failure.Failure {
	return failure.Failure{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// waitsSince returns the time from which a claim without a Machine could have got one.
func (p *planning) waitsSince(claim Claim) time.Time {
	return lo.Latest(claim.Created, claim.WaitsSince, p.acted, p.UpSince)
}

// unasked reports whether the operator has not requested all Machines that claims wait for: the
// resource does not exist, or its replicas are not raised yet.
func (p *planning) unasked() bool { return !p.Exists || p.Replicas < p.plan.Replicas }

// whyNone returns what prevents Cluster API from creating a Machine for a claim.
func (p *planning) whyNone(claim Claim) string {
	if p.unasked() && claim.Rejected != "" {
		return ": " + claim.Rejected
	}
	return p.Problem
}

// waitsFor returns what a Machine waits for. Providers of contract v1beta1 give the reason only in a deprecated condition.
func (m Machine) waitsFor() string {
	if text := m.Bootstrap.problem(); text != "" {
		return text
	}
	text := m.Infrastructure.problem()
	switch {
	case strings.Contains(text, m.Provider.Message): // also if it reports none
		return text
	case text == "":
		return m.Provider.String()
	}
	return fmt.Sprintf("%s (%s: %s)", text, m.Provider.Reason, m.Provider.Message)
}
