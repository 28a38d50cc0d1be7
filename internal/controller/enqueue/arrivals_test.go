// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// A raise waits for the rest of a burst, but not for long, and a single claim does not wait after the window.
func TestMoreExpected(t *testing.T) {
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		came  []time.Duration // when claims come
		after time.Duration   // the time of the question
		want  time.Duration
	}{
		"none":                                {},
		"one, after a quiet time":             {came: []time.Duration{0}, after: quiet},
		"another has just come":               {came: []time.Duration{0, 90 * ms}, after: 100 * ms, want: 90 * ms},
		"the last came a second before":       {came: []time.Duration{0, 90 * ms}, after: time.Second},
		"they still come":                     {came: []time.Duration{0, 90 * ms, 180 * ms, 270 * ms, 360 * ms}, after: 370 * ms, want: 30 * ms},
		"they come for too long":              {came: []time.Duration{0, 90 * ms, 180 * ms, 270 * ms, 360 * ms, 450 * ms}, after: 460 * ms},
		"the first of the next burst":         {came: []time.Duration{0, 90 * ms, 500 * ms}, after: 510 * ms, want: 90 * ms},
		"one after the clock was set back":    {came: []time.Duration{time.Hour, 0}, after: 10 * ms, want: 90 * ms},
		"the question after it was set back":  {came: []time.Duration{time.Hour}, after: 10 * ms},
		"a minute before it was set forwards": {came: []time.Duration{0}, after: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			clock := clocktesting.NewFakePassiveClock(start)
			spacing := NewSpacing(clock)
			for _, at := range tc.came {
				clock.SetTime(start.Add(at))
				spacing.Arrive("", "resource")
			}
			clock.SetTime(start.Add(tc.after))
			if got := spacing.MoreExpected("resource"); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if got := spacing.MoreExpected("another"); got != 0 {
				t.Errorf("got %s for another resource", got)
			}
		})
	}
}

// Claims come to a resource when they are created with its name, or get it. Other events of them do not count.
func TestArrivals(t *testing.T) {
	of := func(resource string) *karpv1.NodeClaim {
		return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.ScalableResourceAnnotation: resource}}}
	}
	q := priorityqueue.New[reconcile.Request](t.Name())
	defer q.ShutDown()
	for name, tc := range map[string]struct {
		send func(*Spacing)
		want bool
	}{
		"created":                  {send: func(s *Spacing) { s.ofClaims().Create(t.Context(), event.CreateEvent{Object: of("r")}, q) }, want: true},
		"created without its name": {send: func(s *Spacing) { s.ofClaims().Create(t.Context(), event.CreateEvent{Object: of("")}, q) }},
		"gets its name": {send: func(s *Spacing) {
			s.ofClaims().Update(t.Context(), event.UpdateEvent{ObjectOld: of(""), ObjectNew: of("r")}, q)
		}, want: true},
		"changes": {send: func(s *Spacing) {
			s.ofClaims().Update(t.Context(), event.UpdateEvent{ObjectOld: of("r"), ObjectNew: of("r")}, q)
		}},
		"is deleted": {send: func(s *Spacing) { s.ofClaims().Delete(t.Context(), event.DeleteEvent{Object: of("r")}, q) }},
	} {
		t.Run(name, func(t *testing.T) {
			spacing := NewSpacing(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			tc.send(spacing)
			if got := spacing.MoreExpected("r") > 0; got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// A claim is urgent until it is launched and the resource has handled that. Nothing waits for what follows.
func TestClaimsThatWaitAreUrgent(t *testing.T) {
	of := func(resource string, launched bool) *karpv1.NodeClaim {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.ScalableResourceAnnotation: resource}}}
		if launched {
			claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
		}
		return claim
	}
	update := func(before, after *karpv1.NodeClaim) func(context.Context, handler.EventHandler, queue) {
		return func(ctx context.Context, events handler.EventHandler, q queue) {
			events.Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		}
	}
	for name, tc := range map[string]struct {
		send func(context.Context, handler.EventHandler, queue)
		want urgency
	}{
		"created": {func(ctx context.Context, events handler.EventHandler, q queue) {
			events.Create(ctx, event.CreateEvent{Object: of("r", false)}, q)
		}, ofNewClaim},
		"gets its name":       {update(of("", false), of("r", false)), ofNewClaim},
		"is launched":         {update(of("r", false), of("r", true)), ofNewClaim},
		"changes after that":  {update(of("r", true), of("r", true)), ofOthers},
		"moves to a resource": {update(of("s", true), of("r", true)), ofNewClaim},
		"is deleted": {func(ctx context.Context, events handler.EventHandler, q queue) {
			events.Delete(ctx, event.DeleteEvent{Object: of("r", true)}, q)
		}, ofOthers},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := priorityqueue.New[reconcile.Request](t.Name())
				began := time.Now()
				tc.send(t.Context(), NewSpacing(clock.RealClock{}).ofClaims(), q)
				for {
					if item, _ := q.Get(); item.Name == "r" {
						break
					}
				}
				if got := time.Since(began); got != tc.want.window {
					t.Errorf("handled after %s, want %s", got, tc.want.window)
				}
				q.ShutDown()
				synctest.Wait()
			})
		})
	}
}
