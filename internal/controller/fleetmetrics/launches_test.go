// SPDX-License-Identifier: Apache-2.0

package fleetmetrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

func at(seconds int) time.Time { return fixture.Noon.Add(time.Duration(seconds) * time.Second) }

// sight is what an event shows. An event of a Machine has no template.
type sight struct {
	template string
	past     bool
	steps    []reached
}

func ofClaim(steps ...reached) sight {
	return sight{template: "general", steps: append([]reached{{created, at(0)}}, steps...)}
}

func ofMachine(created, linkedAt int) sight {
	return sight{steps: []reached{{machine, at(created)}, {linked, at(linkedAt)}}}
}

func before(s sight) sight {
	s.past = true
	return s
}

func TestLaunchesAreObservedOnce(t *testing.T) {
	whole := ofClaim(reached{providerID, at(50)}, reached{node, at(70)}, reached{initialized, at(100)})
	for name, tc := range map[string]struct {
		sights []sight
		want   map[string]time.Duration
	}{
		"a whole launch": {
			sights: []sight{ofClaim(), ofMachine(10, 15), whole},
			want:   map[string]time.Duration{"machine": 10e9, "link": 5e9, "provider_id": 35e9, "node": 20e9, "initialized": 30e9},
		},
		"the Machine is seen first": {
			sights: []sight{ofMachine(10, 15), ofClaim()},
			want:   map[string]time.Duration{"machine": 10e9, "link": 5e9},
		},
		"the Machine was spare": {
			sights: []sight{ofClaim(), ofMachine(-500, 2)},
			want:   map[string]time.Duration{"machine": 0, "link": 2e9},
		},
		"the NodeClaim gets another Machine, and all is seen again": {
			sights: []sight{ofClaim(), ofMachine(10, 15), ofMachine(200, 210), whole, whole},
			want:   map[string]time.Duration{"machine": 10e9, "link": 5e9, "provider_id": 35e9, "node": 20e9, "initialized": 30e9},
		},
		"a restart before the Machine": {
			sights: []sight{before(ofClaim()), ofMachine(10, 15)},
			want:   map[string]time.Duration{"machine": 10e9, "link": 5e9},
		},
		"a restart after the link, whose time is unknown then": {
			sights: []sight{before(ofClaim()), before(sight{steps: []reached{{machine, at(10)}, {step: linked}}}), whole},
			want:   map[string]time.Duration{"node": 20e9, "initialized": 30e9},
		},
		"a restart after the Node was registered": {
			sights: []sight{before(ofClaim(reached{step: providerID}, reached{node, at(70)})), ofClaim(reached{initialized, at(100)})},
			want:   map[string]time.Duration{"initialized": 30e9},
		},
		"a restart after the launch": {sights: []sight{before(whole), whole}},
		"only the Machine is known":  {sights: []sight{ofMachine(10, 15)}},
	} {
		t.Run(name, func(t *testing.T) {
			var got map[string]time.Duration
			l := &launches{of: map[types.UID]*launch{}, observe: func(template, phase string, took time.Duration) {
				if _, twice := got[phase]; twice || template != "general" {
					t.Errorf("phase %s of template %q is observed twice, or for no template", phase, template)
				}
				if got == nil {
					got = map[string]time.Duration{}
				}
				got[phase] = took
			}}
			for _, s := range tc.sights {
				l.see("c", s.template, s.past, s.steps...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
			l.forgetUnseen("c")
			l.forget("c")
			if len(l.of) > 0 {
				t.Error("the entry of a deleted NodeClaim remains")
			}
		})
	}
}
