// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	"github.com/karpenter-capi/karpenter-capi/test/trials/scene"
)

const (
	// waves is the number of parts in which the Pods are created, so that claims are launched
	// during the whole phase.
	waves = 6
	// leavingKills is how often the operator is killed while half of the Pods are deleted.
	leavingKills = 4

	// An offering whose machine could not be launched is unavailable for 3 minutes, and a machine pool settles 90 s after
	// the last kill. On a busy machine, Cluster API and Karpenter core need further minutes for 75 deletions.
	settleWithin = 12 * time.Minute
)

// trial is a run of chaos or quiet.
type trial struct {
	*scene.Scene
	sizes

	// ended is whether the kills have ended, so that a remaining failure is permanent.
	ended bool
}

// chaos is the trial with kills.
func chaos(ctx context.Context, s *trial) (string, error) {
	recorder, stopRecording, err := s.Record(ctx)
	if err != nil {
		return "", err
	}
	kills, trialErr := s.makeChaos(ctx)
	if ctx.Err() != nil {
		return "", errors.Join(trialErr, stopRecording())
	}
	if s.ended && trialErr == nil {
		trialErr = s.CaughtUp(ctx, recorder)
	}
	if err := stopRecording(); err != nil {
		return "", errors.Join(trialErr, err)
	}
	verdict, losses, err := s.verdict(ctx, recorder)
	if err != nil {
		return "", errors.Join(trialErr, err)
	}
	s.TellLosses(losses)
	counts := fmt.Sprintf("kills=%d claims=%d machines_leaked=%d double_links=%d wrong_deletes=%d lost_to_surplus=%d",
		kills, recorder.Claims(), verdict.Count(history.Leak), verdict.Count(history.DoubleLink), verdict.Count(history.WrongDelete), len(losses))
	if trialErr != nil || len(verdict) > 0 {
		text, err := s.Describe(verdict)
		return "", errors.Join(trialErr, fmt.Errorf("%s\n%s", counts, text), err)
	}
	return counts, nil
}

// verdict checks the history and the objects that are left now.
func (s *trial) verdict(ctx context.Context, recorder *history.Recorder) (verdict scene.Verdict, losses []history.Violation, err error) {
	verdict, losses, err = s.Violations(recorder)
	if err != nil || !s.ended {
		return verdict, losses, err
	}
	left, err := s.Leftovers(ctx, recorder)
	return append(verdict, left...), losses, err
}

// makeChaos creates and deletes the Pods while components are killed or paused. It returns the number of
// these faults.
func (s *trial) makeChaos(ctx context.Context) (kills int, err error) {
	s.Step("6 offerings of %ss, one of them slow; of the machines of two of the others, %d %% fail", s.Kind, s.Failing)
	if err := s.Prepare(ctx); err != nil {
		return 0, err
	}
	random := rand.New(rand.NewPCG(s.seed, 0))
	blows := plan(random, s.kills, true)
	s.Step("%d pods, each on its own node, while components are killed or paused %d times (-seed %d)", s.pods, len(blows), s.seed)
	err = s.trouble(ctx, blows, func(i int) error {
		kills++
		if wave := i * waves / len(blows); i == 0 || wave > (i-1)*waves/len(blows) {
			return s.Scale(ctx, s.pods*(wave+1)/waves)
		}
		return nil
	})
	if err != nil {
		return kills, err
	}
	s.Step("no more kills: everything settles")
	s.ended = true
	if err := s.Settle(ctx, s.pods, settleWithin); err != nil {
		return kills, err
	}
	s.ended = false
	s.Step("half of the pods are deleted, while the operator is killed %d times", leavingKills)
	if err := s.trouble(ctx, plan(random, leavingKills, false), func(i int) error {
		kills++
		if i == 0 {
			return s.Scale(ctx, s.pods/2)
		}
		return nil
	}); err != nil {
		return kills, err
	}
	s.ended = true
	if err := s.Settle(ctx, s.pods/2, settleWithin); err != nil {
		return kills, err
	}
	_, err = s.beQuiet(ctx)
	return kills, err
}
