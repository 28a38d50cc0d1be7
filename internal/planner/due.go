// SPDX-License-Identifier: Apache-2.0

package planner

import "time"

// limitPoll is the time after which a claim that exceeds a limit is looked at again.
const limitPoll = time.Minute

// Due is when time alone changes a plan, such as a launchTimeoutSeconds that ends.
type Due struct {
	// In is the time until then; zero if no such time comes.
	In time.Duration
	// Why is what ends then.
	Why Reason
}

// dueAt makes a plan due at a time, unless it is due earlier or the time has passed.
func (p *planning) dueAt(at time.Time, why Reason) {
	if in := at.Sub(p.Now); in > 0 && (p.plan.Due.In == 0 || in < p.plan.Due.In) {
		p.plan.Due = Due{In: in, Why: why}
	}
}

// decideDue decides when the resource is looked at again, without an event.
func (p *planning) decideDue() {
	p.scaling.due(&p.State, p.dueAt)
	for i := range p.Machines {
		p.machineDue(&p.Machines[i])
	}
	waits := false
	for _, claim := range p.Claims {
		p.claimDue(claim)
		waits = waits || p.overLimit(claim)
	}
	if waits {
		// No event shows that another claim no longer counts toward the limit.
		p.dueAt(p.Now.Add(limitPoll), LimitIsReached)
	}
}

func (p *planning) machineDue(machine *Machine) {
	if machine.Leaving {
		return
	}
	if !machine.HasNode {
		since := p.startedAt(*machine)
		p.dueAt(since.Add(p.progressTimeout()), MayStall)
		p.dueAt(since.Add(p.Durations.LaunchTimeout), LaunchTimeoutEnds)
	}
	if machine.Claim == "" {
		p.dueAt(p.expiresAt(*machine), SpareTTLEnds)
	}
}

func (p *planning) claimDue(claim Claim) {
	if !claim.NeedsMachine {
		return
	}
	machine, served := p.servedBy(claim)
	if !served && p.needsMachine(claim) {
		since := p.waitsSince(claim)
		p.dueAt(since.Add(p.progressTimeout()), MayStall)
		p.dueAt(since.Add(p.Durations.LaunchTimeout), LaunchTimeoutEnds)
	}
	if claim.Stalled {
		// No event shows that a provider acts on an object again.
		p.dueAt(p.Now.Add(p.Durations.NoProgress), MayResume)
		return
	}
	if served && machine.Node == "" && machine.Stall.Reason == "" {
		p.dueAt(p.slowAt(claim, *machine), MayBeSlow)
	}
	if served && machine.ProviderID == "" {
		p.dueAt(p.launchSince(claim, *machine).Add(p.Durations.LaunchTimeout), LaunchTimeoutEnds)
	}
}
