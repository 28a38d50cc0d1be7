// SPDX-License-Identifier: Apache-2.0

package partition

import (
	"context"
	"errors"

	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	"github.com/karpenter-capi/karpenter-capi/test/trials/scene"
)

// observed is what the history and the observer had before a round.
type observed struct {
	violations, lost, claims, machines int
}

func (t *trial) observe() (observed, error) {
	violations, _, err := t.Violations(t.recorder)
	return observed{len(violations), len(t.observer.everLost()), t.recorder.Claims(), t.recorder.Requested()}, err
}

// judge adds to a row what happened since a round began.
func (t *trial) judge(ctx context.Context, r *row, before observed) error {
	violations, _, err := t.Violations(t.recorder)
	return errors.Join(err, t.judgeAll(ctx, r, before, violations[before.violations:]))
}

// judgeEnd does the same when everything has settled, and adds what must not exist then.
func (t *trial) judgeEnd(ctx context.Context, r *row, before observed) error {
	violations, losses, err := t.Violations(t.recorder)
	t.TellLosses(losses)
	left, leftErr := t.Leftovers(ctx, t.recorder)
	return errors.Join(err, leftErr, t.judgeAll(ctx, r, before, append(violations[before.violations:], left...)))
}

func (t *trial) judgeAll(ctx context.Context, r *row, before observed, violations scene.Verdict) error {
	// Each claim has one Machine. Some have none, because they are deleted before. What replicas did not ask for is Cluster API's.
	surplus := max(0, (t.recorder.Requested()-before.machines)-(t.recorder.Claims()-before.claims))
	if surplus > 0 {
		r.problem("%d more Machines than NodeClaims were created", surplus)
	}
	r.doubled = max(surplus, violations.Count(history.DoubleLink))
	r.wrong = violations.Count(history.WrongDelete)
	lost := t.observer.everLost()[before.lost:]
	r.lost = len(lost) + violations.Count(history.LostLink)
	for _, text := range lost {
		r.problem("%s", text)
	}
	marked, err := t.marked(ctx)
	for i := range marked {
		r.problem("offering %s %s is marked as unavailable: %s", marked[i].InstanceType, marked[i].Zone, marked[i].Message)
	}
	if len(violations) == 0 {
		return err
	}
	text, textErr := t.Describe(violations)
	r.problem("%s", text)
	return errors.Join(err, textErr)
}
