// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"
	"testing"
)

// A claim that comes when Machines are let go of a pool asks for one, and not for those
// once more.
func TestPoolLetsGoWhileAClaimComes(t *testing.T) {
	leaving := Machine{Leaving: true, Used: true, Chosen: true, Held: true, Settled: true}
	first, second := leaving, leaving
	first.Name, second.Name = "first", "second"
	for name, tc := range map[string]struct {
		settled  bool
		replicas int32
		letGo    []string
	}{
		"the provider knows the replicas":     {settled: true, replicas: 2, letGo: []string{"first", "second"}},
		"the provider may not know them, yet": {settled: false, replicas: 4},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(State{
				Replicas: 1,
				Claims:   []Claim{{UID: "served", Name: "served"}, {UID: "new", Name: "new", NeedsMachine: true}},
				Machines: []Machine{{Name: "live", Claim: "served", Used: true}, first, second},
				Scaling:  Pool{Settled: tc.settled},
			})
			if plan.Replicas != tc.replicas || !slices.Equal(plan.LetGo, tc.letGo) {
				t.Errorf("got %d replicas, and lets go %v; want %d and %v", plan.Replicas, plan.LetGo, tc.replicas, tc.letGo)
			}
		})
	}
}
