// SPDX-License-Identifier: Apache-2.0

package partition

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/history"
	"github.com/karpenter-capi/karpenter-capi/test/harness/proxy"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
	"github.com/karpenter-capi/karpenter-capi/test/harness/workload"
	"github.com/karpenter-capi/karpenter-capi/test/trials/scene"
)

const (
	// launchTimeout is less than a fault lasts, so a launch that the fault interrupts could be taken for one that failed.
	launchTimeout = 90 * time.Second

	settleWithin = 12 * time.Minute
	busyWithin   = 2 * time.Minute
)

// trial is one run.
type trial struct {
	*scene.Scene
	options
	random   *rand.Rand
	recorder *history.Recorder
	observer *observer
	// counts are the Pods of each Deployment.
	counts []int
}

// partition executes all faults on both sides.
func partition(ctx context.Context, on *stack.Stack, options options) (string, error) {
	t := &trial{
		Scene:   scene.New(on, scene.Options{Kind: options.kind, LaunchTimeout: launchTimeout}),
		options: options, random: rand.New(rand.NewPCG(options.seed, 0)),
	}
	recorder, stopRecording, err := t.Record(ctx)
	if err != nil {
		return "", err
	}
	t.recorder = recorder
	ctx, stopObserver := context.WithCancel(ctx)
	defer stopObserver()
	if t.observer, err = newObserver(ctx, on.Kubeconfig()); err != nil {
		return "", errors.Join(err, stopRecording())
	}
	rows, err := t.rounds(ctx)
	for _, line := range table(rows) {
		fmt.Println(line)
	}
	if err = errors.Join(err, stopRecording()); err != nil {
		return "", err
	}
	if problems := problems(rows); len(problems) > 0 {
		return "", fmt.Errorf("%s\n%s", counts(rows), problems)
	}
	return fmt.Sprintf("%s kind=%s", counts(rows), t.kind), nil
}

// rounds returns a row for each fault and side, up to the first after which something did not settle.
func (t *trial) rounds(ctx context.Context) ([]row, error) {
	t.Step("6 offerings of %ss in two clusters; the operator reaches each through a proxy (-seed %d)", t.kind, t.seed)
	if err := t.Prepare(ctx); err != nil {
		return nil, err
	}
	t.counts = targets(t.pods, 0, 0)
	if err := t.scale(ctx); err != nil {
		return nil, err
	}
	if err := t.settle(ctx); err != nil {
		return nil, err
	}
	var rows []row
	for _, fault := range t.faults {
		for _, side := range []string{"management", "workload"} {
			r, err := t.round(ctx, len(rows), fault, side)
			if r.fault != "" {
				rows = append(rows, r)
			}
			if err != nil {
				return rows, fmt.Errorf("%s of the %s cluster: %w", fault, side, err)
			}
		}
	}
	return rows, nil
}

// round executes one fault on one side, while half of the Deployments grow and the others shrink.
func (t *trial) round(ctx context.Context, number int, fault proxy.Mode, side string) (row, error) {
	t.Step("%s of the %s cluster for %s", fault, side, t.lasting)
	before, err := t.observe()
	if err != nil {
		return row{}, err
	}
	if err := t.getBusy(ctx, number); err != nil {
		return row{}, err
	}
	t.observer.begin()
	affected, err := t.disturb(ctx, number, fault, side)
	ended := time.Now()
	r := row{fault: fault, side: side, claims: t.observer.end()}
	if err != nil {
		return r, err
	}
	t.Tell("the fault has affected %d connections and requests, and %d claims were in flight", affected, r.claims)
	if affected == 0 || r.claims == 0 {
		r.problem("the fault has no effect: %d connections and requests affected, %d claims in flight", affected, r.claims)
	}
	if err := t.settle(ctx); err != nil {
		return r, errors.Join(err, t.judge(ctx, &r, before))
	}
	r.caughtUp = time.Since(ended)
	return r, errors.Join(t.CaughtUp(ctx, t.recorder), t.judgeEnd(ctx, &r, before))
}

// getBusy makes the first step of the change, and returns when claims are being deleted and launched.
func (t *trial) getBusy(ctx context.Context, number int) error {
	next := targets(t.pods, number, 1)
	for i := range next {
		t.counts[i] = min(t.counts[i], next[i])
	}
	if err := t.scale(ctx); err != nil {
		return err
	}
	if err := t.Await(ctx, busyWithin, "claims to be deleted", t.observer.awaits(deleting)); err != nil {
		return err
	}
	t.counts = next
	if err := t.scale(ctx); err != nil {
		return err
	}
	return t.Await(ctx, busyWithin, "claims to be launched", t.observer.awaits(launching))
}

// disturb makes the other steps of the change during the fault, and returns what the fault has affected.
func (t *trial) disturb(ctx context.Context, number int, fault proxy.Mode, side string) (affected int, err error) {
	through := t.ManagementProxy
	if side == "workload" {
		through = t.WorkloadProxy
	}
	limited, stop := context.WithTimeout(ctx, t.lasting)
	defer stop()
	through.Set(fault)
	for step := 2; step <= steps; step++ {
		pass(limited, time.Duration(t.random.Int64N(int64(t.lasting)/steps)))
		t.counts = targets(t.pods, number, step)
		if err := t.scale(ctx); err != nil {
			return 0, err
		}
	}
	<-limited.Done()
	affected = through.Affected()
	through.Set(proxy.Pass)
	return affected, context.Cause(ctx)
}

// scale sets the numbers of Pods.
func (t *trial) scale(ctx context.Context) error {
	for i, count := range t.counts {
		if err := workload.Scale(ctx, t.Workload, scene.Workloads[i].Name, count); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) settle(ctx context.Context) error {
	pods := 0
	for _, count := range t.counts {
		pods += count
	}
	return t.Settle(ctx, pods, settleWithin)
}

// marked returns the offerings that are marked as unavailable. No machine fails, so none may be.
func (t *trial) marked(ctx context.Context) ([]v1alpha1.UnavailableOffering, error) {
	template := &v1alpha1.KarpenterMachineTemplate{}
	err := t.Workload.Get(ctx, client.ObjectKey{Name: scene.TemplateName}, template)
	return template.Status.UnavailableOfferings, err
}

// pass waits, to pace the changes. It ends earlier with the context.
func pass(ctx context.Context, period time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(period):
	}
}
