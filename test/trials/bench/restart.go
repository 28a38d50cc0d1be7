// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// restart is what happens when the operator starts with all Nodes.
type restart struct {
	// Seconds are from the start of the process until no reconcile is queued, and none of its own controllers is running.
	Seconds float64 `json:"seconds"`
	// Writes are those until then.
	Writes int `json:"writes"`
}

// The operator has caught up when there is no such reconcile in two samples.
const (
	caughtUpWithin = 5 * time.Minute
	caughtUpSample = time.Second
)

// restart restarts the operator, and waits until it has caught up. It is profiled from when its caches are filled.
func (t *trial) restart(ctx context.Context, profiler *profiler) (*restart, error) {
	if err := t.StopComponent(ctx, stack.Operator); err != nil {
		return nil, err
	}
	if _, err := t.requests(); err != nil {
		return nil, err
	}
	began, idle := time.Now(), time.Time{}
	if err := t.StartComponent(ctx, stack.Operator); err != nil {
		return nil, err
	}
	stopProfiling := profiler.start(ctx, "restart")
	var sampled time.Time
	err := t.Await(ctx, caughtUpWithin, "the restarted operator to have caught up", func(ctx context.Context) (bool, string, error) {
		if time.Since(sampled) < caughtUpSample {
			return false, "", nil
		}
		sampled = time.Now()
		busy, err := busyReconciles(ctx, t.Stack)
		switch {
		case err != nil:
			return false, err.Error(), nil
		case busy > 0:
			idle = time.Time{}
		case idle.IsZero():
			idle = sampled
		default:
			return true, "", nil
		}
		return false, fmt.Sprintf("%.0f reconciles are queued or running", busy), nil
	})
	if err := errors.Join(err, stopProfiling()); err != nil {
		return nil, err
	}
	entries, err := t.requests()
	return &restart{Seconds: idle.Sub(began).Seconds(), Writes: len(audit.WritesBy(t.agent, entries))}, err
}

// busyReconciles returns how many reconciles of the operator are queued, and how many of its own controllers are running. Some
// of Karpenter core's never end.
func busyReconciles(ctx context.Context, on *stack.Stack) (busy float64, err error) {
	families, err := operatorMetrics(ctx, on)
	if err != nil {
		return 0, err
	}
	for _, metric := range families["workqueue_depth"].GetMetric() {
		busy += metric.GetGauge().GetValue()
	}
	for _, metric := range families["controller_runtime_active_workers"].GetMetric() {
		if isOwn := lo.ContainsBy(metric.GetLabel(), ofOwnController); isOwn {
			busy += metric.GetGauge().GetValue()
		}
	}
	return busy, nil
}
