// SPDX-License-Identifier: Apache-2.0

package fleetmetrics

import (
	"sync"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
)

// step is a step of a launch.
type step int

const (
	created step = iota
	machine
	linked
	providerID
	node
	initialized
	steps // their number
)

// phases has the name of the phase that ends with a step.
var phases = [steps]string{machine: "machine", linked: "link", providerID: "provider_id", node: "node", initialized: "initialized"}

// launch is what is known about the launch of one NodeClaim.
type launch struct {
	// template is empty until the NodeClaim was seen.
	template string
	// at has the time of each step; zero if the step was not reached, or its time is unknown.
	at [steps]time.Time
	// done has the steps that are not observed any more.
	done [steps]bool
}

// launches observes the phases of launches. It keeps one entry for each NodeClaim, until that is deleted.
type launches struct {
	observe func(template, phase string, took time.Duration)

	mu sync.Mutex
	of map[types.UID]*launch
}

// reached is a step that a NodeClaim has reached.
type reached struct {
	step step
	// at is zero if it is unknown.
	at time.Time
}

// see records the steps that a NodeClaim has reached. Without a template, a Machine shows them. past steps were reached before
// this process could see them, and are not observed.
func (l *launches) see(claim types.UID, template string, past bool, all ...reached) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, found := l.of[claim]
	if !found {
		known = &launch{}
		l.of[claim] = known
	}
	if template != "" {
		known.template = template
	}
	for _, r := range all {
		known.done[r.step] = known.done[r.step] || past
		if known.at[r.step].IsZero() {
			known.at[r.step] = r.at
		}
	}
	l.advance(known)
}

// advance observes each phase whose begin and end are known.
func (l *launches) advance(known *launch) {
	if known.template == "" {
		return
	}
	for end := machine; end < steps; end++ {
		begin := known.at[end-1]
		if begin.IsZero() || known.at[end].IsZero() {
			continue
		}
		// A spare Machine is older than its NodeClaim, and the times of the API have no fractions of a second.
		known.at[end] = lo.Latest(begin, known.at[end])
		if !known.done[end] {
			known.done[end] = true
			l.observe(known.template, phases[end], known.at[end].Sub(begin))
		}
	}
}

// has reports whether the time of a step is known.
func (l *launches) has(claim types.UID, step step) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, found := l.of[claim]
	return found && !known.at[step].IsZero()
}

// forget removes the entry of a NodeClaim that was deleted.
func (l *launches) forget(claim types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, claim)
}

// forgetUnseen removes the entry of a NodeClaim that only its Machine has shown.
func (l *launches) forgetUnseen(claim types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, found := l.of[claim]; found && known.template == "" {
		delete(l.of, claim)
	}
}
