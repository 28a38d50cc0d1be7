// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/test/harness/counts"
	"github.com/karpenter-capi/karpenter-capi/test/harness/rotation"
)

var (
	// recoveries are searched in each run.
	recoveries = []disturbances{
		{outages: 2, ends: 1},
		{outages: 1, restarts: 1, ends: 1},
		{outages: 1, ends: 2},
		{outages: 1, comes: 1, ends: 1},
		{outages: 1, ends: 1, dies: 1},
	}
	// longRecoveries have many states. One run does one of them.
	longRecoveries = []disturbances{
		{outages: 1, ends: 1, deleted: 1},
		{outages: 1, comes: 1, deleted: 1},
		{outages: 1, orphans: 1, ends: 2},
		{outages: 1, orphans: 1, comes: 1, ends: 1},
		{outages: 1, orphans: 1, ends: 1, dies: 1},
		{outages: 2, restarts: 1, ends: 2},
	}
)

// TestPoolRecovery checks that caches that recover at different times after an outage cost no instance of a live claim,
// and that everything that the operator has begun ends.
func TestPoolRecovery(t *testing.T) {
	rotation.Tell(t)
	var searched atomic.Int64
	t.Cleanup(func() {
		counts.Print(t, fmt.Sprintf("search of machine pools after outages: %d states in which no instance of a live claim can be removed; this is %s",
			searched.Load(), rotation.Part(t, len(longRecoveries))))
	})
	for i, d := range slices.Concat(recoveries, longRecoveries) {
		if long := i - len(recoveries); long >= 0 && !rotation.Takes(t, len(longRecoveries), long) {
			continue
		}
		for _, provider := range []PoolProvider{strict, likeAzure} {
			t.Run(fmt.Sprintf("%+v with %+v", d, provider), func(t *testing.T) {
				t.Parallel()
				got, states := search(provider, held, d)
				if got != right {
					t.Errorf("%s after %d states", got, states)
				}
				searched.Add(int64(states))
			})
		}
	}
}

// TestPoolMustSettle checks that the search finds the loss of an instance, or a deletion that never ends, if pools settle
// too early or never.
func TestPoolMustSettle(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*order)
		d      disturbances
		want   string
	}{
		"an outage is not remembered":     {func(o *order) { o.recovery = recent }, disturbances{outages: 1, ends: 1}, wrong},
		"no margin":                       {func(o *order) { o.recovery = reopened }, disturbances{outages: 1, ends: 1}, wrong},
		"a user deletes, and no margin":   {func(o *order) { o.recovery = reopened }, disturbances{outages: 1, comes: 1, deleted: 1}, wrong},
		"a new process counts as settled": {func(o *order) { o.forgets = true }, disturbances{outages: 1, restarts: 1, ends: 1}, wrong},
		"it never settles":                {func(o *order) { o.recovery = recovered + 1 }, disturbances{outages: 1, ends: 1}, stuck},
		"the operator's order":            {func(*order) {}, disturbances{outages: 1, restarts: 1, ends: 1}, right},
	} {
		for _, provider := range []PoolProvider{strict, likeAzure} {
			t.Run(name, func(t *testing.T) {
				o := held
				test.change(&o)
				if got, _ := search(provider, o, test.d); got != test.want {
					t.Errorf("with %+v: %s, want %s", provider, got, test.want)
				}
			})
		}
	}
}
