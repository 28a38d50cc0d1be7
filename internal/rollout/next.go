// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
)

const (
	// maxCanary is the maximum of status.rollout.canary in the CRD.
	maxCanary = 50
	// maxHistory is the maximum of status.rollout.history in the CRD.
	maxHistory = 2
)

// Input is what Next decides by.
type Input struct {
	// Spec is spec.rollout of the template.
	Spec *v1alpha1.Rollout
	// Status is status.rollout as it is stored; nil if there is none. It is not modified.
	Status *v1alpha1.RolloutStatus
	// Revision identifies what the template generates now, and Stored is the part of the spec that a rollback restores.
	Revision string
	Stored   *runtime.RawExtension
	// ResumedAt is when a user has resumed the rollout; zero if never.
	ResumedAt time.Time
	// Claims are all of the template.
	Claims []Claim
	Now    time.Time
}

// Next returns the next state of a rollout, and after what time to ask again if no event comes before; zero if only an event
// changes it. The same input gives the same state, and a state that is stored is the next state of itself.
func Next(in Input) (*v1alpha1.RolloutStatus, time.Duration) {
	slices.SortFunc(in.Claims, byAge)
	next := in.Status
	// No step leads back to an earlier one at the same time, so this ends.
	for range 5 {
		after := in.step(next)
		if after == next {
			break
		}
		next = after
	}
	return next, in.again(next)
}

// step returns the state that follows a state now; the state itself if nothing changes.
func (in *Input) step(s *v1alpha1.RolloutStatus) *v1alpha1.RolloutStatus {
	if s == nil || s.Revision != in.Revision {
		return in.begin(s)
	}
	if failed := in.failed(s); failed != nil {
		return in.to(s, v1alpha1.RolloutStopped, func(n *v1alpha1.RolloutStatus) {
			n.Message = budget.Text("NodeClaim "+failed.Name+" "+failed.Failure, budget.Stop)
		})
	}
	if lo.FromPtr(in.Spec.Paused) {
		return s
	}
	switch s.Step {
	case v1alpha1.RolloutCanary:
		return in.canary(s)
	case v1alpha1.RolloutSoaking:
		return in.soaking(s)
	case v1alpha1.RolloutRolling:
		if len(in.outdated()) == 0 {
			return in.complete(s)
		}
	case v1alpha1.RolloutComplete:
		if len(in.outdated()) > 0 {
			return in.start(s)
		}
	case v1alpha1.RolloutStopped:
		if in.ResumedAt.After(s.LastTransitionTime.Time) {
			return in.start(s)
		}
	}
	return s
}

// begin returns the first state for another revision. If that is what ran before, it needs no canary.
func (in *Input) begin(s *v1alpha1.RolloutStatus) *v1alpha1.RolloutStatus {
	switch {
	case len(in.outdated()) == 0:
		return in.complete(s)
	case lo.FromPtr(in.Spec.Paused):
		return s
	case s != nil && len(s.History) > 0 && s.History[0].Revision == in.Revision:
		back := in.start(s)
		back.Step, back.Canary = v1alpha1.RolloutRolling, nil
		return back
	default:
		return in.start(s)
	}
}

// start returns the state in which the first claims are replaced.
func (in *Input) start(s *v1alpha1.RolloutStatus) *v1alpha1.RolloutStatus {
	return in.to(s, v1alpha1.RolloutCanary, func(n *v1alpha1.RolloutStatus) {
		n.Revision, n.StartTime, n.Canary = in.Revision, n.LastTransitionTime, in.oldest()
	})
}

// canary waits until the first claims have ended and a new Node is ready. If no claim is new after progressDeadlineSeconds,
// as when the Pods fit on other Nodes, nothing was tried yet, and others are chosen.
func (in *Input) canary(s *v1alpha1.RolloutStatus) *v1alpha1.RolloutStatus {
	outdated, fresh := in.outdated(), in.fresh(s)
	left := lo.SliceToMap(outdated, func(c Claim) (string, bool) { return string(c.UID), true })
	switch {
	case lo.SomeBy(s.Canary, func(chosen v1alpha1.RolloutNodeClaim) bool { return left[chosen.UID] }):
		return s
	case lo.SomeBy(fresh, func(c Claim) bool { return c.Healthy }):
		return in.to(s, v1alpha1.RolloutSoaking, nil)
	case len(fresh) > 0 || lo.SomeBy(in.Claims, func(c Claim) bool { return c.Ending }):
		return s
	case len(outdated) == 0:
		return in.complete(s)
	case in.Now.Before(in.chosenAgainAt(s)):
		return s
	default:
		return in.start(s)
	}
}

// chosenAgainAt is when other claims are chosen if none is new.
func (in *Input) chosenAgainAt(s *v1alpha1.RolloutStatus) time.Time {
	return s.LastTransitionTime.Add(seconds(in.Spec.ProgressDeadlineSeconds, v1alpha1.DefaultProgressDeadline))
}

// soaking waits for the soak time. It begins again if no new claim is left.
func (in *Input) soaking(s *v1alpha1.RolloutStatus) *v1alpha1.RolloutStatus {
	fresh := in.fresh(s)
	switch {
	case len(fresh) == 0:
		return in.to(s, v1alpha1.RolloutCanary, nil)
	case !lo.SomeBy(fresh, func(c Claim) bool { return c.Healthy }) || in.Now.Before(in.soakedAt(s)):
		return s
	default:
		return in.to(s, v1alpha1.RolloutRolling, nil)
	}
}

// soakedAt returns when the soak time of a rollout is over.
func (in *Input) soakedAt(s *v1alpha1.RolloutStatus) time.Time {
	return s.LastTransitionTime.Add(seconds(in.Spec.SoakSeconds, v1alpha1.DefaultSoak))
}

// complete returns the state in which no claim is outdated. The history has each revision once.
func (in *Input) complete(s *v1alpha1.RolloutStatus) *v1alpha1.RolloutStatus {
	return in.to(s, v1alpha1.RolloutComplete, func(n *v1alpha1.RolloutStatus) {
		if s == nil || s.Revision != in.Revision {
			n.Revision, n.StartTime = in.Revision, n.LastTransitionTime
		}
		before := lo.Reject(n.History, func(r v1alpha1.RolloutRevision, _ int) bool { return r.Revision == in.Revision })
		n.History = append([]v1alpha1.RolloutRevision{{Revision: in.Revision, Spec: in.Stored}}, before...)
		n.History = n.History[:min(len(n.History), maxHistory)]
	})
}

// to returns a copy of a state with another step, which begins now. The canary belongs only to its step.
func (in *Input) to(s *v1alpha1.RolloutStatus, step v1alpha1.RolloutStep, change func(*v1alpha1.RolloutStatus)) *v1alpha1.RolloutStatus {
	next := lo.FromPtr(s.DeepCopy())
	next.Step, next.LastTransitionTime, next.Message = step, metav1.NewTime(in.Now.Truncate(time.Second)), ""
	next.Canary = nil
	if change != nil {
		change(&next)
	}
	return &next
}

// oldest returns the claims that are replaced first.
func (in *Input) oldest() []v1alpha1.RolloutNodeClaim {
	outdated := in.outdated()
	count, err := intstr.GetScaledValueFromIntOrPercent(lo.CoalesceOrEmpty(in.Spec.Canary, lo.ToPtr(intstr.FromInt32(1))), len(outdated), true)
	if err != nil { // the CustomResourceDefinition accepts no such value
		count = 1
	}
	count = min(max(count, 1), maxCanary, len(outdated))
	first := lo.Map(outdated[:count], func(c Claim, _ int) v1alpha1.RolloutNodeClaim {
		return v1alpha1.RolloutNodeClaim{Name: c.Name, UID: string(c.UID)}
	})
	return first[:budget.Fit(first, budget.Canary)]
}

// outdated returns the outdated claims, the oldest first.
func (in *Input) outdated() []Claim {
	return lo.Filter(in.Claims, func(c Claim, _ int) bool { return c.Outdated && !c.Ending })
}

// fresh returns the claims that were created since a rollout began and that stay.
func (in *Input) fresh(s *v1alpha1.RolloutStatus) []Claim {
	return lo.Filter(in.Claims, func(c Claim, _ int) bool { return isNew(s, c) && !c.Ending })
}

// failed returns the oldest new claim that has failed while a rollout is active; nil if none has.
func (in *Input) failed(s *v1alpha1.RolloutStatus) *Claim {
	if !active(s) {
		return nil
	}
	failed, found := lo.Find(in.Claims, func(c Claim) bool { return isNew(s, c) && c.Failure != "" })
	return lo.Ternary(found, &failed, nil)
}

// isNew reports whether a claim was created since a rollout began.
func isNew(s *v1alpha1.RolloutStatus, c Claim) bool {
	return !c.Outdated && !c.Created.Before(s.StartTime.Time)
}

// active reports whether a rollout replaces or observes Nodes.
func active(s *v1alpha1.RolloutStatus) bool {
	return s.Step == v1alpha1.RolloutCanary || s.Step == v1alpha1.RolloutSoaking || s.Step == v1alpha1.RolloutRolling
}

// again returns after what time the state can change without an event.
func (in *Input) again(s *v1alpha1.RolloutStatus) time.Duration {
	if s == nil || s.Revision != in.Revision || !active(s) {
		return 0
	}
	times := lo.FilterMap(in.Claims, func(c Claim, _ int) (time.Time, bool) { return c.FailsAt, isNew(s, c) })
	if !lo.FromPtr(in.Spec.Paused) {
		switch s.Step {
		case v1alpha1.RolloutSoaking:
			times = append(times, in.soakedAt(s))
		case v1alpha1.RolloutCanary:
			times = append(times, in.chosenAgainAt(s))
		}
	}
	ahead := lo.FilterMap(times, func(at time.Time, _ int) (time.Duration, bool) { return at.Sub(in.Now), at.After(in.Now) })
	return lo.Min(ahead)
}

func byAge(a, b Claim) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
