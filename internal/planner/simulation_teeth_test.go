// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"

	"github.com/samber/lo"
)

// TestSimulationHasTeeth plants bugs, each of which some interleaving must find. The crash search (test/simulation/crash), with
// the same bugs in the planner, does not find the first in its scenario "adopt", nor the second in a twelfth of its runs with
// MachineDeployments: it has no user who deletes unmanaged Machines or removes links at any time.
func TestSimulationHasTeeth(t *testing.T) {
	const tries = 2000
	for name, planted := range map[string]options{
		"an unmanaged Machine that is deleted does not count": {own: 2, bug: func(state *State) {
			own := lo.CountBy(state.Machines, func(m Machine) bool { return !m.leaves() && !m.Created.After(adopted) })
			state.Unmanaged = min(state.Unmanaged, int32(own))
		}},
		"a claim is not known by its provider ID": {bug: func(state *State) {
			for i := range state.Claims {
				state.Claims[i].ProviderID = ""
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			without := planted
			without.bug = nil
			for seed := range int64(tries) {
				if simulate(seed, planted, false).failure == "" {
					continue
				}
				if correct := simulate(seed, without, false).failure; correct != "" {
					t.Fatalf("seed %d fails without the bug: %s", seed, correct)
				}
				t.Logf("caught by seed %d", seed)
				return
			}
			t.Errorf("not found in %d interleavings", tries)
		})
	}
}
