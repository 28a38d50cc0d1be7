// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestSpacingDelay(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		sizes []int         // of the reconciles so far, one in 10 s
		took  time.Duration // how long each of them took to read its objects
		since time.Duration // since the last of them has read them
		want  time.Duration
	}{
		"before the first reconcile":             {want: 100 * time.Millisecond},
		"a small resource":                       {sizes: []int{200}, want: 100 * time.Millisecond},
		"a resource of medium size":              {sizes: []int{1200}, want: 150 * time.Millisecond},
		"1,000 claims with their Machines":       {sizes: []int{2000}, want: 250 * time.Millisecond},
		"during the gap":                         {sizes: []int{2000}, since: 100 * time.Millisecond, want: 150 * time.Millisecond},
		"near the end of the gap":                {sizes: []int{2000}, since: 200 * time.Millisecond, want: 100 * time.Millisecond},
		"after the clock was set back":           {sizes: []int{2000}, since: -10 * time.Minute, want: 250 * time.Millisecond},
		"after a quiet time":                     {sizes: []int{2000}, since: time.Minute, want: 100 * time.Millisecond},
		"a huge resource":                        {sizes: []int{100_000}, want: time.Second},
		"a resource that has become large":       {sizes: []int{200, 2000}, want: 250 * time.Millisecond},
		"a large resource that stays so":         {sizes: []int{2000, 2000}, want: 250 * time.Millisecond},
		"a large resource that takes long":       {sizes: []int{2000, 2000}, took: 50 * time.Millisecond, want: 200 * time.Millisecond},
		"a large resource that has become small": {sizes: []int{2000, 2}, want: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(start)
			spacing := NewSpacing(clock)
			for _, size := range tc.sizes {
				clock.SetTime(clock.Now().Add(10 * time.Second))
				spacing.Begin("resource")
				clock.SetTime(clock.Now().Add(tc.took))
				spacing.SetSize("resource", size)
			}
			clock.SetTime(clock.Now().Add(tc.since))
			if got := spacing.delay("resource", window); got != tc.want {
				t.Errorf("got a delay of %s, want %s", got, tc.want)
			}
			if got := spacing.delay("another", window); got != window {
				t.Errorf("got a delay of %s for another resource, want %s", got, window)
			}
		})
	}
}

// A new Machine is handled sooner, but not sooner than the gap after the last reconcile ends.
func TestNewMachineIsHandledSoon(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	spacing := NewSpacing(clock)
	for _, step := range []struct {
		size  int
		since time.Duration
		want  time.Duration
	}{
		{want: machineWindow},
		{size: 2, since: 30 * time.Millisecond, want: 70 * time.Millisecond},
		{size: 2, since: time.Second, want: machineWindow},
		{size: 2000, since: 100 * time.Millisecond, want: 150 * time.Millisecond},
	} {
		if step.size > 0 {
			spacing.Begin("resource")
			spacing.SetSize("resource", step.size)
		}
		clock.SetTime(clock.Now().Add(step.since))
		if got := spacing.delay("resource", machineWindow); got != step.want {
			t.Errorf("%d objects, %s after the last reconcile: got %s, want %s", step.size, step.since, got, step.want)
		}
	}
	spacing.SetSize("resource", 0)
	if len(spacing.passes) > 0 {
		t.Errorf("a resource without objects is not forgotten: %+v", spacing.passes)
	}
}

// A reconcile during a stream of events takes longer with more objects, and begins less often. Every
// event is followed by a reconcile in time.
func TestSpacingCollectsEvents(t *testing.T) {
	// No event is at the very moment at which a reconcile begins.
	const duration, interval = 20 * time.Second, 1001 * time.Microsecond
	for name, tc := range map[string]struct {
		objects int
		gap     time.Duration
	}{
		"few objects":  {objects: 20, gap: window},
		"many objects": {objects: 2000, gap: 250 * time.Millisecond},
		"huge":         {objects: 100_000, gap: maxGap},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spacing := NewSpacing(clock.RealClock{})
				q := priorityqueue.New[reconcile.Request](t.Name()) // that of controller-runtime's controllers
				var began []time.Time
				go func() {
					for {
						item, shutdown := q.Get()
						if shutdown {
							return
						}
						began = append(began, time.Now())
						spacing.Begin(item.Name)
						time.Sleep(time.Duration(tc.objects) * 5 * time.Microsecond) // events arrive during the read
						spacing.SetSize(item.Name, tc.objects)
						q.Done(item)
					}
				}()
				var last time.Time
				for range duration / interval {
					time.Sleep(interval)
					last = time.Now()
					spacing.add(q, "resource")
				}
				time.Sleep(2 * maxGap)
				q.ShutDown()
				synctest.Wait()

				if most := int(duration/tc.gap) + 2; len(began) > most {
					t.Errorf("got %d reconciles in %s, want %d at most", len(began), duration, most)
				}
				for i := 1; i < len(began); i++ {
					if gap := began[i].Sub(began[i-1]); gap < tc.gap && i > 1 || gap > tc.gap+window {
						t.Errorf("reconciles %d and %d begin %s apart, want %s", i, i+1, gap, tc.gap)
					}
				}
				if !began[len(began)-1].After(last) {
					t.Error("no reconcile has followed the last event")
				}
			})
		})
	}
}
