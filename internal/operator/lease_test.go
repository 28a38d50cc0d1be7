// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAwaitOtherHolder(t *testing.T) {
	type answer struct {
		holder string
		err    error
	}
	for name, tc := range map[string]struct {
		answers []answer
		want    string
	}{
		"it remains the same":         {answers: []answer{{holder: "a"}, {holder: "a"}, {holder: "a"}}},
		"another one":                 {answers: []answer{{holder: "a"}, {holder: "a"}, {holder: "b"}}, want: "b has the lease of a"},
		"after requests have failed":  {answers: []answer{{holder: "a"}, {err: errors.New("no answer")}, {holder: "b"}}, want: "b has the lease of a"},
		"nobody, and then the same":   {answers: []answer{{holder: "a"}, {}, {holder: "a"}}},
		"the first request fails":     {answers: []answer{{err: errors.New("no answer")}, {holder: "a"}, {holder: "a"}}},
		"all requests fail, it stays": {answers: []answer{{err: errors.New("no answer")}, {err: errors.New("no answer")}}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			next := 0
			err := awaitOtherHolder(ctx, time.Millisecond, func(context.Context) (string, error) {
				if next == len(tc.answers) {
					stop()
					return "", ctx.Err()
				}
				next++
				return tc.answers[next-1].holder, tc.answers[next-1].err
			})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || err.Error() != tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if next != len(tc.answers) {
				t.Errorf("it ended after %d of %d answers", next, len(tc.answers))
			}
		})
	}
}

// A process that was paused exits before another one leads.
func TestALeaderExitsBeforeAnotherLeads(t *testing.T) {
	if renewDeadline >= leaseDuration || retryPeriod >= renewDeadline {
		t.Errorf("lease of %s, renewed within %s, every %s", leaseDuration, renewDeadline, retryPeriod)
	}
}
