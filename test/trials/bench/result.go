// SPDX-License-Identifier: Apache-2.0

package bench

import "time"

// result is what one run has measured.
type result struct {
	Variant   string `json:"variant"`
	N         int    `json:"n"`
	Offerings int    `json:"offerings"`
	// Every is how long after each other the Pods were created, in nanoseconds; zero for all at once.
	Every time.Duration `json:"every,omitempty"`
	Run   int           `json:"run"`

	// Up runs from the creation of the Pods until all run, and Down from their deletion until nothing is left.
	Up   phase `json:"up"`
	Down phase `json:"down"`

	// Steps are those from a Pod to where it runs, of the scale-up.
	Steps []step `json:"steps,omitempty"`

	// Memory of Karpenter at the end of the scale-up.
	Memory memory `json:"memory"`

	// ClusterAPIConflicts are the writes of Machines by Cluster API that failed because the Machine had changed.
	ClusterAPIConflicts int `json:"clusterAPIConflicts"`

	// The rest is measured only for this operator.

	// Link is the time from the creation of a Machine until it is linked to a claim. ProviderID is the time from the
	// creation of a Node until its claim has its provider ID, and SinceMachine from the linked Machine's provider ID.
	Link         distribution `json:"link"`
	ProviderID   distribution `json:"providerID"`
	SinceMachine distribution `json:"sinceMachine"`

	// LinkRequest is the same as Link, but with the times of the API server.
	LinkRequest distribution `json:"linkRequest"`

	// Requests are those of the operator, and ClaimWrites the writes of NodeClaims that changed something.
	Requests    []requestCount `json:"requests,omitempty"`
	ClaimWrites claimWrites    `json:"claimWrites"`

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

// each returns a number of requests per claim.
func (r *result) each(requests int) float64 { return float64(requests) / float64(r.N) }

func (r *result) conflicts() float64 {
	writes := sum(r.Requests, isMachineWrite)
	if writes == 0 {
		return 0
	}
	return float64(sum(r.Requests, isMachineConflict)) / float64(writes)
}

func (r *result) requests() float64 {
	return r.each(sum(r.Requests, func(requestKind) bool { return true }))
}
func (r *result) refused() float64   { return r.each(sum(r.Requests, isRefused)) }
func (r *result) liveReads() float64 { return r.each(sum(r.Requests, isLiveReadOfClaim)) }
func (r *result) otherReads() float64 {
	return r.each(sum(r.Requests, isLiveRead) - sum(r.Requests, isLiveReadOfClaim))
}
func (r *result) machineWrites() float64  { return r.each(sum(r.Requests, isMachineWrite)) }
func (r *result) ownClaimWrites() float64 { return r.each(r.ClaimWrites.Own) }
func (r *result) claimWrites() float64    { return r.each(sum(r.Requests, isClaimWrite)) }

func (r *result) templateWrites() float64 { return r.each(sum(r.Requests, isTemplateWrite)) }

func (r *result) clusterAPIConflicts() float64 { return r.each(r.ClusterAPIConflicts) }

// cpu returns the CPU seconds per claim of the component in both phases.
func (r *result) cpu(component string) float64 {
	return (r.Up.CPU[component] + r.Down.CPU[component]) / float64(r.N)
}

// disturbing is the number of cores that other processes can use without a warning.
const disturbing = 0.2

// disturbance returns how many cores were used by processes that do not belong to the run.
func (r *result) disturbance() float64 {
	// The CPU time is that of the phases until everything has settled, which is a little longer.
	return (r.Up.CPU[others] + r.Down.CPU[others]) / (r.Up.Seconds + r.Down.Seconds)
}
