// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-capi/karpenter-capi/test/harness/audit"
	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// operatorAgent is the user agent of the operator.
const operatorAgent = "karpenter-capi"

// trial is one run of one variant, on its own stack.
type trial struct {
	*stack.Stack
	variant
	size
	timeline *timeline
	profiler *profiler
	// audited is how far the audit log was read.
	audited audit.Position
	// reconciled is how often the operator's own controllers had reconciled when they were last counted.
	reconciled float64
}

// within is how long a phase can take, on a slow machine, too.
func (s size) within() time.Duration {
	return 3*time.Minute + time.Duration(s.n)*(2*time.Second+s.every) + time.Duration(s.standing)*standingWithin
}

// measure measures the loads of a run on one stack, and calls a function with the result of each.
func measure(ctx context.Context, options options, of planned, measured func(*result) error) (err error) {
	begin := of.sizes[0]
	with, err := stackOptions(options.dir, of.variant, begin)
	if err != nil {
		return err
	}
	on, err := stack.Up(ctx, with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Down(context.WithoutCancel(ctx))) }()
	// The watches end before the stack does.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	t := &trial{Stack: on, variant: of.variant, size: begin}
	if t.timeline, err = observe(ctx, on); err != nil {
		return err
	}
	first, err := t.begin(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w\nThe logs are in %s", of.variant.name, err, on.LogDir())
	}
	for _, load := range of.sizes {
		t.size = load
		if options.profile && of.variant.component == stack.Operator {
			t.profiler = newProfiler(on, fmt.Sprintf("%d-%d-%d", load.n, load.offerings, of.run))
		}
		m := &result{Variant: of.variant.name, N: load.n, Offerings: load.offerings, Every: load.every, Waves: load.waves, Standing: load.standing, Run: of.run, First: first}
		if m.Work, err = work(); err != nil {
			return err
		}
		if err := t.run(ctx, m); err != nil {
			return fmt.Errorf("%s with %s: %w\nThe logs are in %s", of.variant.name, load, err, on.LogDir())
		}
		fmt.Printf("    %s: up %.1f s, down %.1f s\n", load, m.Up.Seconds, m.Down.Seconds)
		if used := m.disturbance(); used > disturbing {
			fmt.Printf("    disturbed: processes that do not belong to it used %.1f cores, so the durations are too long\n", used)
		}
		if err := measured(m); err != nil {
			return err
		}
	}
	return nil
}

// mostWithHeartbeats is how many Nodes can have the heartbeats of real ones. With 5,000, kwok would renew 500 leases a second,
// which is more than two cores can do; with a factor of 20, it renews 25.
const mostWithHeartbeats = 1000

// stackOptions returns the options of the stack of a variant.
func stackOptions(dir string, of variant, size size) (stack.Options, error) {
	options := stack.Options{Dir: dir, OperatorArgs: []string{"--enable-profiling=true"}}
	if size.standing+size.n > mostWithHeartbeats {
		options.HeartbeatFactor = 20
	}
	switch of.component {
	case "":
		options.WithoutOperator = true
	case stack.KarpenterKwok:
		types, err := render(kwokInstanceTypes, size.offerings, nodeClass{})
		if err != nil {
			return options, err
		}
		options.KwokInstanceTypes = filepath.Join(dir, "instance-types.json")
		return options, errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(options.KwokInstanceTypes, types, 0o600))
	}
	return options, nil
}

// run scales up and down, and fills in the result.
func (t *trial) run(ctx context.Context, measured *result) (err error) {
	if t.catalog {
		if err := t.addCatalog(ctx); err != nil {
			return err
		}
	}
	if err := t.count(ctx); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, os.WriteFile(filepath.Join(t.LogDir(), "timeline-"+t.load()+".log"), []byte(t.timeline.lines()), 0o600))
	}()
	up, err := t.scaleUp(ctx, measured)
	if err != nil {
		return err
	}
	down, err := t.phase(ctx, "down", 0, &measured.Down)
	if err != nil {
		return err
	}
	if err := t.checkDown(ctx); err != nil {
		return err
	}
	measured.ClusterAPIConflicts = clusterAPIConflicts(up) + clusterAPIConflicts(down)
	measured.Requests = requestCounts(up, down)
	if t.component == stack.Operator {
		t.ofOperator(measured, up, down)
	}
	return t.countReconciles(ctx, measured)
}

// begin prepares everything, lets the first Pods come and go, and lets Nodes stand. It returns the steps of the first Pods.
func (t *trial) begin(ctx context.Context) ([]step, error) {
	if err := t.prepare(ctx, t); err != nil {
		return nil, err
	}
	// An API server still works for some seconds after it is ready, and so do others after a phase is complete.
	if err := t.calm(ctx); err != nil {
		return nil, err
	}
	first, err := t.first(ctx)
	if err != nil {
		return nil, err
	}
	return first, t.stand(ctx)
}

// count begins to count. Nothing of an earlier load must be left.
func (t *trial) count(ctx context.Context) error {
	t.timeline.reset()
	err := t.calm(ctx)
	if err != nil {
		return err
	}
	if t.audited, err = t.auditLog().End(); err != nil || t.component != stack.Operator {
		return err
	}
	t.reconciled, err = reconcilesOf(ctx, t.Stack)
	return err
}

// scaleUp measures the scale-up, and what happens at rest after it. It returns the requests of the scale-up.
func (t *trial) scaleUp(ctx context.Context, measured *result) ([]audit.Entry, error) {
	up, err := t.phase(ctx, "up", t.n, &measured.Up)
	if err != nil {
		return nil, err
	}
	measured.Steps = t.timeline.steps()
	if measured.Memory, err = memoryOf(ctx, t.Stack, t.component); err != nil {
		return nil, err
	}
	if err := errors.Join(t.checkUp(ctx), t.calm(ctx)); err != nil {
		return nil, err
	}
	late, err := t.requests()
	if err == nil && t.component != "" && t.standing+t.n >= restFrom {
		err = t.observeAll(ctx, measured)
	}
	return append(up, late...), err
}

// observeAll measures what happens at rest, after a restart of the operator, and how long the kubectl plugin takes. A restart before that lets core do the first
// check of the consistency of each claim, which it otherwise does within ten minutes (karpenter: nodeclaim/consistency).
func (t *trial) observeAll(ctx context.Context, measured *result) error {
	var err error
	if t.component != stack.Operator {
		measured.Rest, err = t.rest(ctx)
		return err
	}
	if err := t.countReconciles(ctx, measured); err != nil {
		return err
	}
	if _, err := t.restart(ctx, nil); err != nil {
		return err
	}
	if measured.Rest, err = t.rest(ctx); err != nil {
		return err
	}
	if measured.Restart, err = t.restart(ctx, t.profiler); err != nil {
		return err
	}
	if measured.Answers, err = t.answer(ctx); err != nil {
		return err
	}
	t.reconciled, err = reconcilesOf(ctx, t.Stack)
	return err
}

// ofOperator fills in what is measured only for this operator.
func (t *trial) ofOperator(measured *result, up, down []audit.Entry) {
	measured.LinkRequest = distributionOf(linkRequests(up))
	measured.Link = distributionOf(t.timeline.untilLink())
	measured.ProviderID = distributionOf(t.timeline.untilProviderID())
	measured.SinceMachine = distributionOf(t.timeline.sinceMachine())
	measured.ClaimWrites = t.timeline.claimWrites()
	measured.MostTemplateWrites = mostTemplateWrites(slices.Concat(up, down))
}

// countReconciles adds how often the operator's own controllers have reconciled since they were last counted.
func (t *trial) countReconciles(ctx context.Context, measured *result) error {
	if t.component != stack.Operator {
		return nil
	}
	now, err := reconcilesOf(ctx, t.Stack)
	measured.Reconciles += now - t.reconciled
	return err
}

// first lets one Pod of each offering come and go. It returns the steps of that.
func (t *trial) first(ctx context.Context) ([]step, error) {
	if err := t.scale(ctx, t, t.offerings); err != nil {
		return nil, err
	}
	if _, err := t.await(ctx, "the first Pods to run", t.settled, t.offerings); err != nil {
		return nil, err
	}
	steps := t.timeline.steps()
	if err := t.scale(ctx, t, 0); err != nil {
		return nil, err
	}
	_, err := t.await(ctx, "nothing of the first Pods to be left", tallyNames, 0)
	return steps, err
}

// phase scales to a number of Pods and waits until nothing is left to do. It returns the requests of all
// clients.
func (t *trial) phase(ctx context.Context, name string, n int, measured *phase) ([]audit.Entry, error) {
	before, err := usageOf(ctx, t.Stack)
	if err != nil {
		return nil, err
	}
	stopProfiling := t.profiler.start(ctx, name)
	began := time.Now()
	if err := t.apply(ctx, n); err != nil {
		return nil, err
	}
	reached := t.up
	if n == 0 {
		reached = tallyNames
	}
	ended, err := t.await(ctx, fmt.Sprintf("the scale-%s to be complete", name), reached, n)
	if err != nil {
		return nil, err
	}
	measured.Seconds = ended.Sub(began).Seconds()
	if n > 0 {
		if _, err := t.await(ctx, "everything to settle", t.settled, n); err != nil {
			return nil, err
		}
	}
	if err := stopProfiling(); err != nil {
		return nil, err
	}
	after, err := usageOf(ctx, t.Stack)
	if err != nil {
		return nil, err
	}
	measured.CPU = after.since(before)
	return t.requests()
}

// apply scales to a number of Pods: all at once, one after the other, or in waves.
func (t *trial) apply(ctx context.Context, n int) error {
	if t.waves > 0 {
		for i := t.waves; i < n; i += t.waves {
			if err := t.scale(ctx, t, i); err != nil {
				return err
			}
			if _, err := t.await(ctx, fmt.Sprintf("%d Pods to run", i), t.up, i); err != nil {
				return err
			}
		}
	}
	if t.every == 0 || n == 0 {
		return t.scale(ctx, t, n)
	}
	pace := time.NewTicker(t.every)
	defer pace.Stop()
	for i := range n {
		if err := t.scale(ctx, t, i+1); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pace.C:
		}
	}
	return nil
}

// requests returns the requests of all clients since the last call.
func (t *trial) requests() (entries []audit.Entry, err error) {
	entries, t.audited, err = t.auditLog().Since(t.audited)
	return entries, err
}

// auditLog is the audit log of the only API server.
func (t *trial) auditLog() audit.Log {
	return audit.Log{Path: filepath.Join(t.LogDir(), "audit.log")}
}

// await waits until each of the sets has n objects, and returns when that became so.
func (t *trial) await(ctx context.Context, what string, sets []tallyName, n int) (at time.Time, err error) {
	want := map[tallyName]int{}
	for _, set := range sets {
		want[set] = n
	}
	var shown time.Time
	began := time.Now()
	err = t.Await(ctx, t.within(), what, func(context.Context) (done bool, found string, err error) {
		at, done = t.timeline.reached(want)
		found = describeCounts(t.timeline.counts())
		if time.Since(shown) > progressEvery && time.Since(began) > progressEvery {
			fmt.Printf("    %4.0fs  %s\n", time.Since(began).Seconds(), found)
			shown = time.Now()
		}
		return done, found, nil
	})
	return at, err
}

// progressEvery is how often progress is printed.
const progressEvery = 10 * time.Second

func describeCounts(counts map[tallyName]int) string {
	texts := make([]string, 0, len(tallyNames))
	for _, name := range tallyNames {
		texts = append(texts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(texts, "  ")
}
