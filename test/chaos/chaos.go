// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/history"
	"github.com/karpenter-capi/karpenter-capi/test/stack/stack"
)

const (
	// waves is the number of parts in which the Pods are created, so that claims are launched
	// during the whole phase.
	waves = 6
	// leavingKills is how often the operator is killed while half of the Pods are deleted.
	leavingKills = 4

	// An offering whose machine could not be launched is unavailable for 3 minutes.
	settleWithin   = 6 * time.Minute
	caughtUpWithin = 20 * time.Second
)

// chaos is the trial with kills.
func chaos(ctx context.Context, s *scene) (string, error) {
	recorder, stopRecording, err := s.record(ctx)
	if err != nil {
		return "", err
	}
	kills, trialErr := s.makeChaos(ctx)
	if ctx.Err() != nil {
		return "", errors.Join(trialErr, stopRecording())
	}
	if s.ended && trialErr == nil {
		trialErr = s.caughtUp(ctx, recorder)
	}
	if err := stopRecording(); err != nil {
		return "", errors.Join(trialErr, err)
	}
	verdict, err := s.verdict(ctx, recorder)
	if err != nil {
		return "", errors.Join(trialErr, err)
	}
	if trialErr != nil || !verdict.ok() {
		return "", errors.Join(trialErr, fmt.Errorf("%s\n%s", verdict.counts(kills, recorder.Claims()), verdict))
	}
	return verdict.counts(kills, recorder.Claims()), nil
}

// makeChaos creates and deletes the Pods while components are killed or paused. It returns the number of
// these faults.
func (s *scene) makeChaos(ctx context.Context) (kills int, err error) {
	s.step("6 offerings of %ss, one of them slow; of the machines of two of the others, %d %% fail", s.kind, s.failing)
	if err := s.prepare(ctx); err != nil {
		return 0, err
	}
	random := rand.New(rand.NewPCG(s.seed, 0))
	blows := plan(random, s.kills, true)
	s.step("%d pods, each on its own node, while components are killed or paused %d times (-seed %d)", s.pods, len(blows), s.seed)
	err = s.trouble(ctx, blows, func(i int) error {
		kills++
		if wave := i * waves / len(blows); i == 0 || wave > (i-1)*waves/len(blows) {
			return s.scale(ctx, s.pods*(wave+1)/waves)
		}
		return nil
	})
	if err != nil {
		return kills, err
	}
	s.step("no more kills: everything settles")
	s.ended = true
	if err := s.settle(ctx, s.pods, settleWithin); err != nil {
		return kills, err
	}
	s.ended = false
	s.step("half of the pods are deleted, while the operator is killed %d times", leavingKills)
	if err := s.trouble(ctx, plan(random, leavingKills, false), func(i int) error {
		kills++
		if i == 0 {
			return s.scale(ctx, s.pods/2)
		}
		return nil
	}); err != nil {
		return kills, err
	}
	s.ended = true
	if err := s.settle(ctx, s.pods/2, settleWithin); err != nil {
		return kills, err
	}
	_, err = s.beQuiet(ctx, s.pods/2)
	return kills, err
}

// record follows the history until the returned function is called, which returns the result.
func (s *scene) record(ctx context.Context) (*history.Recorder, func() error, error) {
	etcd, err := s.Component(stack.Etcd)
	if err != nil {
		return nil, nil, err
	}
	log, err := os.Create(filepath.Join(s.LogDir(), "history.log"))
	if err != nil {
		return nil, nil, err
	}
	recorder := history.NewRecorder(history.Rules{Failures: []string{failureReason}, LaunchTimeout: s.launchTimeout}, log)
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- history.Follow(ctx, fmt.Sprintf("http://127.0.0.1:%d", etcd.Port), recorder.Observe)
	}()
	return recorder, func() error {
		stop()
		return errors.Join(<-ended, log.Close())
	}, nil
}
