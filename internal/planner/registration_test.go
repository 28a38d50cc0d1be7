// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"
	"time"
)

// Karpenter's end of a claim is a failure of its offering only if the Node had time to join, and nothing else explains it.
func TestRegistrationFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		claim   func(*Claim)
		machine func(*Machine)
		timeout time.Duration // launchTimeoutSeconds; 10 minutes if zero
		up      time.Time
		want    bool
	}{
		"no Node has joined":                         {want: true},
		"the claim exists":                           {claim: func(c *Claim) { c.Leaving = false }},
		"a user has deleted the claim":               {claim: func(c *Claim) { c.DeletedAt = earlier(120) }},
		"its Node has registered":                    {claim: func(c *Claim) { c.Registered = true }},
		"the Node has joined":                        {machine: func(m *Machine) { m.Node, m.HasNode = "n", true }},
		"there is no provider ID":                    {machine: func(m *Machine) { m.ProviderID = "" }},
		"the instance has just been provisioned":     {machine: func(m *Machine) { m.ProvisionedAt = earlier(299) }},
		"the instance was provisioned 5 minutes ago": {machine: func(m *Machine) { m.ProvisionedAt = earlier(300) }, want: true},
		"the Machine is marked":                      {machine: func(m *Machine) { m.Leaving, m.Marked = true, true }},
		"the Machine has failed otherwise":           {machine: func(m *Machine) { m.Failure.Kind = "MachineFailed" }},
		"nothing acts on the Machine":                {machine: func(m *Machine) { m.Stall = NoProgress("nothing acts") }},
		"the Machine serves the next claim":          {timeout: time.Hour},
		"a cluster could not be reached":             {up: earlier(299)},
	} {
		t.Run(name, func(t *testing.T) {
			claim := Claim{UID: "c", Leaving: true, DeletedAt: earlier(0), RegistersSince: earlier(900)}
			machine := Machine{Name: "m", Claim: "c", Created: earlier(890), ProviderID: "real://m", ProvisionedAt: earlier(800)}
			if tc.claim != nil {
				tc.claim(&claim)
			}
			if tc.machine != nil {
				tc.machine(&machine)
			}
			state := State{Now: earlier(0), UpSince: tc.up, Durations: Durations{LaunchTimeout: 10 * time.Minute, SpareTTL: time.Hour}}
			if tc.timeout > 0 {
				state.Durations.LaunchTimeout = tc.timeout
			}
			failed := state.RegistrationFailure(claim, machine)
			if got := failed.Kind == RegistrationTimeout; got != tc.want || got != (failed.Message == "no Node has joined with the provider ID of Machine m") {
				t.Errorf("got %+v, want a failure: %t", failed, tc.want)
			}
		})
	}
}
