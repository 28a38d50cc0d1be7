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
	const ms = time.Millisecond
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		sizes []int         // of the reconciles so far, one in 10 s
		took  time.Duration // how long each of them took to read its objects
		since time.Duration // since the last of them has read them
		// want has the delays of a new claim, of a new Machine, and of other events.
		want [3]time.Duration
	}{
		"before the first reconcile":             {want: [...]time.Duration{100 * ms, 20 * ms, 250 * ms}},
		"soon after a small one":                 {sizes: []int{2}, since: 30 * ms, want: [...]time.Duration{100 * ms, 20 * ms, 250 * ms}},
		"later":                                  {sizes: []int{2}, since: time.Second, want: [...]time.Duration{100 * ms, 20 * ms, 250 * ms}},
		"200 claims with their Machines":         {sizes: []int{400}, want: [...]time.Duration{100 * ms, 50 * ms, 250 * ms}},
		"600 claims with their Machines":         {sizes: []int{1200}, want: [...]time.Duration{150 * ms, 150 * ms, 600 * ms}},
		"1,000 claims with their Machines":       {sizes: []int{2000}, want: [...]time.Duration{250 * ms, 250 * ms, time.Second}},
		"during the gap":                         {sizes: []int{2000}, since: 100 * ms, want: [...]time.Duration{150 * ms, 150 * ms, 900 * ms}},
		"near the end of the gap":                {sizes: []int{2000}, since: 200 * ms, want: [...]time.Duration{100 * ms, 50 * ms, 800 * ms}},
		"after the clock was set back":           {sizes: []int{2000}, since: -10 * time.Minute, want: [...]time.Duration{250 * ms, 250 * ms, time.Second}},
		"after a quiet time":                     {sizes: []int{2000}, since: time.Minute, want: [...]time.Duration{100 * ms, 20 * ms, 250 * ms}},
		"a huge resource":                        {sizes: []int{100_000}, want: [...]time.Duration{time.Second, time.Second, time.Second}},
		"a resource that has become large":       {sizes: []int{200, 2000}, want: [...]time.Duration{250 * ms, 250 * ms, time.Second}},
		"a large resource that stays so":         {sizes: []int{2000, 2000}, want: [...]time.Duration{250 * ms, 250 * ms, time.Second}},
		"a large resource that takes long":       {sizes: []int{2000, 2000}, took: 50 * ms, want: [...]time.Duration{200 * ms, 200 * ms, 950 * ms}},
		"a large resource that has become small": {sizes: []int{2000, 2}, want: [...]time.Duration{100 * ms, 20 * ms, 250 * ms}},
		"a resource that has become empty":       {sizes: []int{2000, 0}, want: [...]time.Duration{100 * ms, 20 * ms, 250 * ms}},
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
			delays := func(of string) [3]time.Duration {
				return [...]time.Duration{spacing.delay(of, ofNewClaim), spacing.delay(of, ofNewMachine), spacing.delay(of, ofOthers)}
			}
			if got := delays("resource"); got != tc.want {
				t.Errorf("got delays of %s, want %s", got, tc.want)
			}
			if got, want := delays("another"), [...]time.Duration{100 * ms, 20 * ms, 250 * ms}; got != want {
				t.Errorf("got delays of %s for another resource, want %s", got, want)
			}
		})
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
		"few objects":  {objects: 20, gap: ofNewClaim.window},
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
					spacing.add(q, "resource", ofNewClaim)
				}
				time.Sleep(2 * maxGap)
				q.ShutDown()
				synctest.Wait()

				if most := int(duration/tc.gap) + 2; len(began) > most {
					t.Errorf("got %d reconciles in %s, want %d at most", len(began), duration, most)
				}
				for i := 1; i < len(began); i++ {
					if gap := began[i].Sub(began[i-1]); gap < tc.gap && i > 1 || gap > tc.gap+ofNewClaim.window {
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
