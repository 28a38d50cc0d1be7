// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fault is what happens to one write.
type fault struct {
	name string
	// before ends the process instead of the write, after ends it when it is done.
	before, after bool
	// down is for how long there is no process then; another takes over at once if
	// it is zero.
	down time.Duration
	// conflict and fails are errors instead of the answer; applied tells that the write
	// was done all the same.
	conflict, fails, applied bool
	// restart ends the process as soon as it has handled the error.
	restart bool
}

// down is longer than it takes for a machine to go, and as long as it takes until
// another process has the lease.
const down = 20 * time.Second

var faults = []fault{
	{name: "crash_before", before: true},
	{name: "crash_after", after: true},
	{name: "crash_before_down", before: true, down: down},
	{name: "crash_after_down", after: true, down: down},
	{name: "conflict", conflict: true},
	{name: "conflict_restart", conflict: true, restart: true},
	{name: "refused", fails: true},
	{name: "lost_reply", fails: true, applied: true},
	{name: "lost_reply_restart", fails: true, applied: true, restart: true},
}

// plan is the fault of one run, if any: what happens to which write.
type plan struct {
	fault fault
	write string
}

// write is one write of our process, core's controllers included. Its key is what
// is written and how many times that has been before: the order of the writes of
// one reconcile may differ, since maps have none.
type write struct {
	round   int
	actor   string
	key     string
	changes bool // it changed something
}

// faultPoints returns the writes of a clean run that changed something, in an order
// that is the same in every run.
func faultPoints(writes []write) []write {
	points := slices.DeleteFunc(slices.Clone(writes), func(w write) bool { return !w.changes })
	slices.SortStableFunc(points, func(a, b write) int {
		return cmp.Or(cmp.Compare(a.round, b.round), strings.Compare(a.actor, b.actor), strings.Compare(a.key, b.key))
	})
	return points
}

// write does a write of our process, or what the plan has for it.
func (p *process) write(verb, sub string, object client.Object, do func() error) error {
	w := p.world
	what := strings.TrimSpace(fmt.Sprintf("%s %s/%s %s", verb, kindOf(object), object.GetName(), sub))
	w.written[what]++
	key := fmt.Sprintf("%s #%d", what, w.written[what])
	version := w.server.version
	defer func() {
		w.writes = append(w.writes, write{round: w.rounds, actor: w.server.actor, key: key, changes: w.server.version != version})
	}()
	if key != w.plan.write {
		return do()
	}
	w.hit = true
	w.tracef("FAULT %s: %s", w.plan.fault.name, key)
	return p.suffer(w.plan.fault, verb, object, do)
}

// suffer is one faulty write.
func (p *process) suffer(f fault, verb string, object client.Object, do func() error) error {
	w := p.world
	w.down = f.down
	p.restart = f.restart
	switch {
	case f.before:
		panic(crashed{})
	case f.after:
		_ = do()
		panic(crashed{})
	case f.applied:
		if err := do(); err != nil {
			return err
		}
		return apierrors.NewTimeoutError("the write was applied, and the answer is lost", 0)
	case f.fails:
		return apierrors.NewInternalError(errors.New("the API server has a problem"))
	}
	// A conflict is with somebody else's write, which brings an event.
	resource := resourceOf(object)
	if verb == "create" {
		if err := do(); err != nil {
			return err
		}
		return apierrors.NewAlreadyExists(resource, object.GetName())
	}
	w.touch(object)
	return apierrors.NewConflict(resource, object.GetName(), errors.New("somebody else has written"))
}

// touch is a write of somebody else that means nothing.
func (w *world) touch(object client.Object) {
	current, found := w.server.head[kindOf(object)][object.GetName()]
	if !found {
		return
	}
	touched := current.DeepCopyObject().(client.Object)
	annotations := touched.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[touchedAnnotation] = "yes"
	touched.SetAnnotations(annotations)
	before := w.server.actor
	w.server.actor = "somebody"
	must(w.live().Update(context.Background(), touched))
	w.server.actor = before
}

const touchedAnnotation = "crash.test/touched"
