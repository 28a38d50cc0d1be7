// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/trials/scene"
)

const (
	// operatorAgent is the user agent of the operator.
	operatorAgent = "karpenter-capi"

	// Karpenter writes conditions for some seconds after a claim has settled. Nothing is left to write after two
	// consecutive periods of this length without a write.
	calmLook   = 15 * time.Second
	calmWithin = 3 * time.Minute

	launchWithin = 8 * time.Minute

	// Karpenter checks all claims within checkedWithin of a start. It is started at most this often.
	checks        = 5
	checkedWithin = time.Minute

	// restartWithin is the maximum duration of a restart of the operator, and dueWithin that of the wait until no
	// offering becomes available while the operator must be quiet. Offerings are unavailable for 3 minutes or more.
	restartWithin = 10 * time.Second
	dueWithin     = 5 * time.Minute

	// shownWrites is how many single writes are listed.
	shownWrites = 20
)

// quiet is the trial in which nothing happens.
func quiet(ctx context.Context, s *trial) (string, error) {
	s.Step("6 offerings of %ss, and %d pods, each on its own node", s.Kind, s.pods)
	if err := s.Prepare(ctx); err != nil {
		return "", err
	}
	if err := s.Scale(ctx, s.pods); err != nil {
		return "", err
	}
	if err := s.Settle(ctx, s.pods, launchWithin); err != nil {
		return "", err
	}
	writes, err := s.beQuiet(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("claims=%d writes=%d", s.pods, writes), nil
}

// beQuiet waits until the operator stops writing. Then it checks that the operator writes
// nothing during the period, nothing when it is started again, and nothing after that. It returns the number of writes,
// which is 0 without an error. Events also count.
func (s *trial) beQuiet(ctx context.Context) (writes int, err error) {
	s.Step("the operator has nothing to do, and writes nothing for %s", s.period)
	if err := s.bringUpToDate(ctx); err != nil {
		return 0, err
	}
	if err := s.calm(ctx); err != nil {
		return 0, err
	}
	if err := s.nothingDue(ctx); err != nil {
		return 0, err
	}
	from, err := s.AuditLog().End()
	if err != nil {
		return 0, err
	}
	if err := pass(ctx, s.period); err != nil {
		return 0, err
	}
	if writes, err = s.noWrites(from, "in a settled cluster"); err != nil {
		return writes, err
	}
	s.Step("nor when it is started again, for the same period")
	if err := s.StopComponent(ctx, stack.Operator); err != nil {
		return 0, err
	}
	// The period begins here, so that writes during the start count.
	if from, err = s.AuditLog().End(); err != nil {
		return 0, err
	}
	if err := s.StartComponent(ctx, stack.Operator); err != nil {
		return 0, err
	}
	if err := pass(ctx, s.period); err != nil {
		return 0, err
	}
	return s.noWrites(from, "after it was started again")
}

// bringUpToDate makes Karpenter check all claims now: it checks only once in ten minutes whether they are consistent
// with their Nodes, and the first time there is no Node yet. It also counts an attempt that ended with a conflict
// (karpenter: pkg/controllers/nodeclaim/consistency/controller.go), so the operator is started again until all are.
func (s *trial) bringUpToDate(ctx context.Context) (err error) {
	for range checks {
		if err := s.StopComponent(ctx, stack.Operator); err != nil {
			return err
		}
		if err := s.StartComponent(ctx, stack.Operator); err != nil {
			return err
		}
		if err = s.Await(ctx, checkedWithin, "all claims to be found consistent", s.consistent); err == nil {
			return nil
		}
	}
	return err
}

// consistent reports whether Karpenter has found all claims consistent.
func (s *trial) consistent(ctx context.Context) (bool, string, error) {
	claims := &karpv1.NodeClaimList{}
	if err := s.Workload.List(ctx, claims); err != nil {
		return false, err.Error(), nil
	}
	found := lo.CountBy(claims.Items, func(claim karpv1.NodeClaim) bool {
		return claim.StatusConditions().IsTrue(karpv1.ConditionTypeConsistentStateFound)
	})
	return found == len(claims.Items), fmt.Sprintf("%d of %d are", found, len(claims.Items)), nil
}

// calm waits for two consecutive periods without a write.
func (s *trial) calm(ctx context.Context) error {
	log := s.AuditLog()
	looks, position, err := 0, audit.Position(0), error(nil)
	if position, err = log.End(); err != nil {
		return err
	}
	var last []audit.Entry
	for began := time.Now(); looks < 2; {
		if time.Since(began) > calmWithin {
			return fmt.Errorf("the operator did not stop writing in %s; in the last %s it wrote:\n%s", calmWithin, calmLook, describe(last))
		}
		if err := pass(ctx, calmLook); err != nil {
			return err
		}
		entries, next, err := log.Since(position)
		if err != nil {
			return err
		}
		position, looks = next, looks+1
		if writes := audit.WritesBy(operatorAgent, entries); len(writes) > 0 {
			last, looks = writes, 0
			s.Tell("%d writes in %s, so it has not settled", len(writes), calmLook)
		}
	}
	return nil
}

// nothingDue waits until no unavailable offering becomes available within the given time, because the operator writes
// that change.
func (s *trial) nothingDue(ctx context.Context) error {
	return s.Await(ctx, dueWithin, "no offering to become available within the period", func(ctx context.Context) (bool, string, error) {
		template := &v1alpha1.KarpenterMachineTemplate{}
		if err := s.Workload.Get(ctx, client.ObjectKey{Name: scene.TemplateName}, template); err != nil {
			return false, err.Error(), nil
		}
		for _, offering := range template.Status.UnavailableOfferings {
			if left := time.Until(offering.Until.Time); left > -restartWithin && left < 2*s.period+restartWithin {
				return false, fmt.Sprintf("offering %s %s becomes available at %s", offering.InstanceType, offering.Zone, offering.Until), nil
			}
		}
		return true, "", nil
	})
}

// noWrites returns an error with the operator's writes after a position, if there are any.
func (s *trial) noWrites(from audit.Position, when string) (int, error) {
	entries, _, err := s.AuditLog().Since(from)
	if err != nil {
		return 0, err
	}
	if writes := audit.WritesBy(operatorAgent, entries); len(writes) > 0 {
		return len(writes), fmt.Errorf("the operator is not quiet %s:\n%s", when, describe(writes))
	}
	s.Tell("no write among %d requests of all", len(entries))
	return 0, nil
}

// describe describes writes: how many of each sort, Events separately, and the first of them.
func describe(writes []audit.Entry) string {
	var text strings.Builder
	for _, count := range audit.Count(writes) {
		fmt.Fprintf(&text, "  %s\n", count)
	}
	for _, write := range writes[:min(shownWrites, len(writes))] {
		fmt.Fprintf(&text, "    %s\n", write.String())
	}
	return strings.TrimRight(text.String(), "\n")
}
