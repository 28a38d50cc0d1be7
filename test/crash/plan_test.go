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
	// late is after what time the server does the write, when the process has long been
	// told of a timeout, and others may have written.
	late time.Duration
	// leads is for how long the process goes on while another leads. Its caches see nothing
	// any more; with halfBlind, those of the Cluster's Machines do.
	leads     time.Duration
	halfBlind bool
	// read tells that it is about a read from the API server.
	read bool
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
	{name: "late", late: 3 * time.Second},
	{name: "late_restart", late: 3 * time.Second, restart: true},
	{name: "very_late", late: 20 * time.Second},
	{name: "old_leader", leads: 15 * time.Second},
	{name: "old_leader_half_blind", leads: 15 * time.Second, halfBlind: true},
	{name: "read_fails", fails: true, read: true},
	{name: "read_fails_restart", fails: true, read: true, restart: true},
}

// concerns reports whether a request can have the fault. Core's provisioner is not searched:
// here it counts the claims that there are, and would make one too many.
func (f fault) concerns(r request) bool {
	return f.read == r.read && (f.late == 0 || r.actor != "provisioner")
}

// exactly reports whether as many objects have to be made as without the fault: it lets
// nobody act on what is no longer so.
func (f fault) exactly() bool { return f.late == 0 && f.leads == 0 }

// plan is the fault of one run, if any: what happens to which request.
type plan struct {
	fault   fault
	request string
}

// request is one write of our process, core's controllers included, or one read of ours
// from the API server. Its key is what is written or read and how many times that has
// been before: the order of the requests of one reconcile may differ, since maps have none.
type request struct {
	round   int
	actor   string
	key     string
	read    bool
	changes bool // it changed something
}

// faultPoints returns the requests of a clean run that a fault is about, in an order
// that is the same in every run: reads, or writes that changed something.
func faultPoints(requests []request, f fault) []request {
	points := slices.DeleteFunc(slices.Clone(requests), func(r request) bool { return !f.concerns(r) || !r.read && !r.changes })
	slices.SortStableFunc(points, func(a, b request) int {
		return cmp.Or(cmp.Compare(a.round, b.round), strings.Compare(a.actor, b.actor), strings.Compare(a.key, b.key))
	})
	return points
}

// write does a write of our process, or what the plan or the mode has for it.
func (p *process) write(verb, sub string, object client.Object, do func(client.Object) error) error {
	w := p.world
	key, version := w.count(verb, sub, object), w.server.version
	defer func() {
		w.requests = append(w.requests, request{round: w.rounds, actor: w.server.actor, key: key, changes: w.server.version != version})
	}()
	f, hit := w.faultAt(request{actor: w.server.actor, key: key})
	if !hit {
		return do(object)
	}
	return p.suffer(f, verb, key, object, do)
}

// read does a read of our process from the API server, or lets it fail.
func (p *process) read(object any, name string, do func() error) error {
	w := p.world
	key := w.count("read", name, object)
	r := request{round: w.rounds, actor: w.server.actor, key: key, read: true}
	w.requests = append(w.requests, r)
	if f, hit := w.faultAt(r); hit {
		p.restart = f.restart
		return apierrors.NewInternalError(errors.New("the API server has a problem"))
	}
	return do()
}

// count returns the key of a request.
func (w *world) count(verb, sub string, object any) string {
	name := ""
	if object, single := object.(client.Object); single {
		name = object.GetName()
	}
	what := strings.TrimSpace(fmt.Sprintf("%s %s/%s %s", verb, kindOf(object), name, sub))
	w.counted[what]++
	return fmt.Sprintf("%s #%d", what, w.counted[what])
}

// faultAt returns the fault of a request, and false if it has none.
func (w *world) faultAt(r request) (fault, bool) {
	f, hit := w.mode.faultAt(r)
	if r.key == w.plan.request {
		f, hit, w.hit = w.plan.fault, true, true
	}
	if hit {
		w.tracef("FAULT %s: %s", f.name, r.key)
	}
	return f, hit
}

// suffer is one faulty write.
func (p *process) suffer(f fault, verb, key string, object client.Object, do func(client.Object) error) error {
	w := p.world
	w.down = f.down
	p.restart = f.restart
	switch {
	case f.before:
		panic(crashed{})
	case f.after:
		_ = do(object)
		panic(crashed{})
	case f.late > 0:
		w.late = append(w.late, lateWrite{at: w.clock.Now().Add(f.late), actor: w.server.actor, key: key, object: object.DeepCopyObject().(client.Object), do: do})
		return apierrors.NewTimeoutError("the write may be applied, and may not", 0)
	case f.leads > 0:
		w.handOver(p, f)
		return do(object)
	case f.applied:
		if err := do(object); err != nil {
			return err
		}
		return apierrors.NewTimeoutError("the write was applied, and the answer is lost", 0)
	case f.fails:
		return apierrors.NewInternalError(errors.New("the API server has a problem"))
	}
	// A conflict is with somebody else's write, which brings an event.
	resource := resourceOf(object)
	if verb == "create" {
		if err := do(object); err != nil {
			return err
		}
		return apierrors.NewAlreadyExists(resource, object.GetName())
	}
	w.touch(object)
	return apierrors.NewConflict(resource, object.GetName(), errors.New("somebody else has written"))
}

// lateWrite is a write that the server has and has not done yet.
type lateWrite struct {
	at         time.Time
	actor, key string
	object     client.Object
	do         func(client.Object) error
}

// doLate does the writes whose time has come. Nobody gets the answer.
func (w *world) doLate() {
	w.late = slices.DeleteFunc(w.late, func(l lateWrite) bool {
		due := !w.clock.Now().Before(l.at)
		if due {
			w.server.actor = l.actor
			w.executesLate = true
			err := l.do(l.object)
			w.executesLate = false
			w.tracef("LATE %s: %v", l.key, err)
		}
		return due
	})
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
