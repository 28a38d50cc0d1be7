// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

// simulation is a template with claims that Karpenter replaces as soon as it may.
type simulation struct {
	*rapid.T
	template *v1alpha1.KarpenterMachineTemplate
	revision string
	claims   []Claim
	contents map[types.UID]string // the revision of each claim
	now      time.Time
	created  int
}

func newSimulation(t *rapid.T) *simulation {
	s := &simulation{T: t, template: &v1alpha1.KarpenterMachineTemplate{}, revision: "v1-1", contents: map[types.UID]string{}, now: began}
	s.template.Spec.Rollout = &v1alpha1.Rollout{
		Canary:      new(intstr.FromInt32(rapid.Int32Range(1, 3).Draw(t, "canary"))),
		SoakSeconds: new(rapid.SampledFrom([]int32{0, 60, 600}).Draw(t, "soak")),
	}
	for range rapid.IntRange(1, 8).Draw(t, "claims") {
		s.add(true)
	}
	s.decide()
	s.now = s.now.Add(time.Hour)
	return s
}

// add launches a claim with the present revision.
func (s *simulation) add(healthy bool) {
	s.created++
	c := Claim{Name: fmt.Sprintf("c%02d", s.created), UID: types.UID(fmt.Sprintf("c%02d", s.created)), Created: s.now.Truncate(time.Second), Healthy: healthy}
	s.claims, s.contents[c.UID] = append(s.claims, c), s.revision
}

// decide writes the next state of the rollout. It must be the same a second time.
func (s *simulation) decide() {
	for i := range s.claims {
		s.claims[i].Outdated = s.contents[s.claims[i].UID] != s.revision
	}
	in := Input{Spec: s.template.Spec.Rollout, Status: s.template.Status.Rollout, Revision: s.revision, Claims: append([]Claim{}, s.claims...), Now: s.now}
	next, _ := Next(in)
	in.Status = next
	if again, _ := Next(in); again != next {
		s.Fatalf("a second decision at the same time is %+v, want %+v", again, next)
	}
	s.template.Status.Rollout = next
}

// allowed returns the claims that may be replaced now.
func (s *simulation) allowed() []Claim {
	return lo.Filter(s.claims, func(c Claim, _ int) bool {
		return s.contents[c.UID] != s.revision && MayReplace(s.template, s.revision, c.UID)
	})
}

// replace launches a claim in place of one that may be replaced, which ends if the new one is healthy, as Karpenter does.
func (s *simulation) replace(breaks bool) {
	if allowed := s.allowed(); len(allowed) > 0 {
		before := rapid.SampledFrom(allowed).Draw(s.T, "replaced")
		if s.add(!breaks); !breaks {
			s.claims = lo.Reject(s.claims, func(c Claim, _ int) bool { return c.UID == before.UID })
		}
	}
}

// fail makes all claims of a revision fail that are not healthy.
func (s *simulation) fail() {
	for i := range s.claims {
		if !s.claims[i].Healthy {
			s.claims[i].Failure = "has failed"
		}
	}
}

func (s *simulation) step() v1alpha1.RolloutStep { return s.template.Status.Rollout.Step }

// run replaces claims for some time, and calls check before each of them.
func (s *simulation) run(breaks bool, check func()) {
	for range rapid.IntRange(5, 40).Draw(s.T, "steps") {
		check()
		switch rapid.IntRange(0, 3).Draw(s.T, "action") {
		case 0:
			s.now = s.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(s.T, "seconds")) * time.Second)
		case 1:
			s.replace(breaks)
		case 2: // a Pod needs a Node
			s.add(!breaks)
		case 3:
			s.fail()
		}
		s.decide()
	}
	check()
}

// Before the soak time is over, only the canary may be replaced. A rollout that has stopped replaces nothing. After it is
// undone, no claim is replaced that has what ran before.
func TestRollout(t *testing.T) {
	property.Check(t, 300, func(t *rapid.T) {
		s := newSimulation(t)
		s.revision = "v1-2"
		breaks := rapid.Bool().Draw(t, "the change breaks Nodes")
		tried := map[types.UID]bool{}
		rolling := time.Time{}
		if len(s.allowed()) > 0 {
			t.Fatal("a claim may be replaced before the rollout has begun")
		}
		s.decide()
		s.run(breaks, func() {
			allowed := s.allowed()
			switch s.step() {
			case v1alpha1.RolloutCanary:
				for _, c := range allowed {
					tried[c.UID] = true
				}
				if most := int(s.template.Spec.Rollout.Canary.IntVal); len(tried) > most {
					t.Fatalf("%d claims could be replaced first, want at most %d", len(tried), most)
				}
			case v1alpha1.RolloutRolling, v1alpha1.RolloutComplete:
				if breaks && lo.SomeBy(s.claims, func(c Claim) bool { return s.contents[c.UID] == "v1-1" }) {
					t.Fatal("all claims may be replaced, although no new Node was ever ready")
				}
				if rolling.IsZero() {
					rolling = s.now
				}
			default:
				if len(allowed) > 0 {
					t.Fatalf("%s: %d claims may be replaced, want none", s.step(), len(allowed))
				}
			}
		})
		if soak := time.Duration(*s.template.Spec.Rollout.SoakSeconds) * time.Second; !rolling.IsZero() && rolling.Sub(began.Add(time.Hour)) < soak {
			t.Fatalf("the others are replaced after %s, want %s", rolling.Sub(began.Add(time.Hour)), soak)
		}

		s.revision = "v1-1"
		kept := lo.Filter(s.claims, func(c Claim, _ int) bool { return s.contents[c.UID] == "v1-1" })
		s.decide()
		s.run(false, func() {
			for _, c := range kept {
				if !lo.SomeBy(s.claims, func(other Claim) bool { return other.UID == c.UID }) {
					t.Fatalf("claim %s was replaced by what it was", c.Name)
				}
			}
		})
	})
}
