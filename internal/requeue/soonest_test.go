// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"testing"
	"time"
)

func TestSoonest(t *testing.T) {
	for name, tc := range map[string]struct {
		durations []time.Duration
		want      time.Duration
	}{
		"none":                {},
		"one":                 {durations: []time.Duration{time.Second}, want: time.Second},
		"the first":           {durations: []time.Duration{time.Second, time.Minute}, want: time.Second},
		"the last":            {durations: []time.Duration{time.Minute, time.Hour, time.Second}, want: time.Second},
		"zero is ignored":     {durations: []time.Duration{0, time.Minute, 0}, want: time.Minute},
		"negative is ignored": {durations: []time.Duration{-time.Second, time.Minute}, want: time.Minute},
		"nothing to wait for": {durations: []time.Duration{0, -time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Soonest(tc.durations...); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
