// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"time"

	"github.com/samber/lo"
)

// result is what one run has measured.
type result struct {
	Variant   string `json:"variant"`
	N         int    `json:"n"`
	Offerings int    `json:"offerings"`
	// Every is how long after each other the Pods were created, in nanoseconds; zero for all at once.
	Every time.Duration `json:"every,omitempty"`
	// Waves is how many Pods were created at a time; zero for all.
	Waves int `json:"waves,omitempty"`
	// Standing is how many Nodes existed before.
	Standing int `json:"standing,omitempty"`
	Run      int `json:"run"`

	// Work is for how long one core was busy with the same work before the run, in seconds.
	Work float64 `json:"work,omitempty"`

	// Up runs from the creation of the Pods until all run, and Down from their deletion until nothing is left.
	Up   phase `json:"up"`
	Down phase `json:"down"`

	// Steps are those from a Pod to where it runs, of the scale-up.
	Steps []step `json:"steps,omitempty"`

	// Memory of Karpenter at the end of the scale-up.
	Memory memory `json:"memory"`

	// ClusterAPIConflicts are the writes of Machines by Cluster API that failed because the Machine had changed.
	ClusterAPIConflicts int `json:"clusterAPIConflicts"`

	// Requests are those of all components.
	Requests []requestCount `json:"requests,omitempty"`

	// First has the steps of the first Pod of each offering, which was created and deleted before.
	First []step `json:"first,omitempty"`

	// Rest is what happens while nothing is to do, with all Nodes.
	Rest *rest `json:"rest,omitempty"`

	// Restart is what happens when the operator restarts after that.
	Restart *restart `json:"restart,omitempty"`

	// The remaining fields are measured only for this operator.

	// Answers are for how long a user waits for each command of the kubectl plugin, with all Nodes, in seconds.
	Answers map[string]float64 `json:"answers,omitempty"`

	// Link is the time from the creation of a Machine until it is linked to a claim. ProviderID is the time from the
	// creation of a Node until its claim has its provider ID, and SinceMachine from the linked Machine's provider ID.
	Link         distribution `json:"link"`
	ProviderID   distribution `json:"providerID"`
	SinceMachine distribution `json:"sinceMachine"`

	// LinkRequest is the same as Link, but with the times of the API server.
	LinkRequest distribution `json:"linkRequest"`

	// ClaimWrites are the writes of NodeClaims that changed something.
	ClaimWrites claimWrites `json:"claimWrites"`

	// Reconciles is how often the operator's own controllers have reconciled.
	Reconciles float64 `json:"reconciles"`

	// MostTemplateWrites is the largest number of writes of the status of the template in one burst.
	MostTemplateWrites int `json:"mostTemplateWrites"`
}

// phase is the scale-up or the scale-down.
type phase struct {
	// Seconds until the Pods run, or nothing is left.
	Seconds float64 `json:"seconds"`
	// CPU is the CPU time of each process until everything has settled.
	CPU usage `json:"cpu"`
}

func (r *result) size() size {
	return size{n: r.N, offerings: r.Offerings, every: r.Every, waves: r.Waves, standing: r.Standing}
}

func (r *result) variant() variant {
	of, _ := lo.Find(variants, func(v variant) bool { return v.name == r.Variant })
	return of
}

// each returns a number of requests per claim.
func (r *result) each(requests int) float64 { return float64(requests) / float64(r.N) }

// disturbing is the number of cores that other processes can use without a warning.
const disturbing = 0.2

// disturbance returns how many cores were used by processes that do not belong to the run.
func (r *result) disturbance() float64 {
	// The CPU time is that of the phases until everything has settled, which is a little longer.
	return (r.Up.CPU[others] + r.Down.CPU[others]) / (r.Up.Seconds + r.Down.Seconds)
}

// cpu returns the CPU seconds per claim of a component in both phases.
func (r *result) cpu(component string) float64 {
	return (r.Up.CPU[component] + r.Down.CPU[component]) / float64(r.N)
}

// process returns the CPU seconds per claim of the process in which Karpenter runs.
func (r *result) process() float64 { return r.cpu(r.variant().component) }

// stack returns the CPU seconds per claim of all processes, without the one that measures.
func (r *result) stack() float64 {
	return (r.Up.CPU.total() + r.Down.CPU.total() - r.Up.CPU[self] - r.Down.CPU[self]) / float64(r.N)
}

// step returns how long a step took; false if it was not observed.
func (r *result) step(name string) (distribution, bool) { return stepIn(r.Steps, name) }

func stepIn(steps []step, name string) (distribution, bool) {
	found, ok := lo.Find(steps, func(s step) bool { return s.Name == name })
	return found.Distribution, ok
}
