// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/census"
)

// Count lists the objects of both clusters.
func (s *Scene) Count(ctx context.Context) (census.Census, error) {
	return census.Of(ctx, s.Workload, s.Management, client.MatchingLabels(podLabels))
}

// Settle waits until everything has settled with the given number of Pods.
func (s *Scene) Settle(ctx context.Context, pods int, within time.Duration) error {
	var counted time.Time
	return s.Await(ctx, within, fmt.Sprintf("%d pods with a claim, Machine, instance and Node each, and nothing else", pods),
		func(ctx context.Context) (bool, string, error) {
			// Listing all objects is expensive for the API server, which is already busy.
			if time.Since(counted) < countEvery {
				return false, "", nil
			}
			defer func() { counted = time.Now() }()
			now, err := s.Count(ctx)
			if err != nil {
				return false, err.Error(), nil
			}
			s.Show(now)
			if now.Settled(pods) {
				return true, now.String(), nil
			}
			if err := s.rejectSurplus(ctx); err != nil {
				return false, err.Error(), nil
			}
			return false, now.String(), nil
		})
}

// shown is the last line of progress.
type shown struct {
	text string
	at   time.Time
}

// Everything is counted at most once in countEvery. A line of progress is written this long after the last one, if
// something has changed or if nothing has.
const (
	countEvery     = 2 * time.Second
	changedAfter   = 5 * time.Second
	unchangedAfter = 30 * time.Second
)

// Show prints the progress from time to time.
func (s *Scene) Show(now census.Census) {
	text := now.String()
	if since := time.Since(s.shown.at); since > unchangedAfter || (text != s.shown.text && since > changedAfter) {
		s.Tell("%s", text)
		s.shown = shown{text, time.Now()}
	}
}

// Tell prints a line with the time since the beginning.
func (s *Scene) Tell(format string, args ...any) {
	fmt.Printf("    %4.0fs  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// Step begins a part of the trial.
func (s *Scene) Step(format string, args ...any) {
	fmt.Printf("\n==> %s\n", fmt.Sprintf(format, args...))
}
