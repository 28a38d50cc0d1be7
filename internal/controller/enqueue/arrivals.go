// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

const (
	// quiet is how long no claim must have come for a burst to be complete. It is not longer than the window of a claim, so that
	// a single one never waits for it.
	quiet = 100 * time.Millisecond
	// patience is the longest time that the first claim of a burst waits for the others.
	patience = 400 * time.Millisecond
)

// arrivals is when the first and the last claim of a burst came to a resource.
type arrivals struct{ first, last time.Time }

// MoreExpected returns for how long further claims are expected to come to a resource; zero if none are. Karpenter creates
// the claims of a burst within a few tenths of a second, and Cluster API works on a resource once a second: claims that miss
// a raise of its replicas get their Machines a second later. A restart forgets the arrivals, so that a raise may be earlier.
func (s *Spacing) MoreExpected(resource string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	burst, known := s.bursts[resource]
	if !known {
		return 0
	}
	now := s.clock.Now()
	if now.Before(burst.last) { // the clock was set back
		return 0
	}
	return max(0, min(burst.last.Add(quiet).Sub(now), burst.first.Add(patience).Sub(now)))
}

// Arrive stores that a claim comes to a resource, unless it was there before.
func (s *Spacing) Arrive(before, resource string) {
	if resource == before || resource == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	burst, known := s.bursts[resource]
	if !known || now.Sub(burst.last) >= quiet {
		burst.first = now
	}
	burst.last = now
	s.bursts[resource] = burst
}

// ofClaims enqueues the resource of a claim, and stores when a claim comes to it. A claim waits for its Machine as soon as it has
// come and is launched, which core writes one after the other.
func (s *Spacing) ofClaims() handler.EventHandler {
	enqueued := s.of(ofClaim)
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			s.Arrive("", ofClaim(e.Object))
			s.add(q, ofClaim(e.Object), ofNewClaim)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := ofClaim(e.ObjectOld), ofClaim(e.ObjectNew)
			s.Arrive(before, after)
			if old, isClaim := e.ObjectOld.(*karpv1.NodeClaim); before != after || isClaim && !nodeclaims.IsLaunched(old) {
				s.add(q, after, ofNewClaim)
			}
			enqueued.Update(ctx, e, q)
		},
		DeleteFunc:  enqueued.Delete,
		GenericFunc: enqueued.Generic,
	}
}
