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
	// before ends the process instead of the write, after ends it after the write.
	before, after bool
	// down is how long there is no process then; zero means that another one takes over
	// immediately.
	down time.Duration
	// conflict and fails are errors instead of the response; applied is whether the write was
	// applied nevertheless.
	conflict, fails, applied bool
	// restart ends the process as soon as it has handled the error.
	restart bool
	// late is the time after which the server applies the write. The process has got a timeout by
	// then, and other clients can have written.
	late time.Duration
	// leads is how long the process continues while another one leads. Its caches no longer see any
	// changes; with halfBlind, those of the management cluster do.
	leads     time.Duration
	halfBlind bool
	// read is whether the fault is for a read from the API server.
	read bool
}

// down is longer than the deletion of a machine takes, and as long as another process takes to get
// the lease.
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

// concerns reports whether a request can have the fault. Core's provisioner is not searched: here
// it counts the existing claims, and would create one too many. A deletion has no conflict, except with another object of
// the same name, or if it has a version as precondition.
func (f fault) concerns(r request) bool {
	return f.read == r.read && (!f.conflict || !strings.HasPrefix(r.key, deletes+" ")) && (f.late == 0 || r.actor != "provisioner")
}

// exactly reports whether as many objects must be created as without the fault, because with the
// fault nothing acts on an outdated state.
func (f fault) exactly() bool { return f.late == 0 && f.leads == 0 }

// plan is the fault of one run, if any: which request has which fault.
type plan struct {
	fault   fault
	request string
}

// request is one write of our process, including core's controllers, or one read of the operator
// from the API server. Its key is what is written or read, and how often that has happened before:
// the order of the requests of one reconcile can differ, because maps have none.
type request struct {
	round   int
	actor   string
	key     string
	read    bool
	changes bool // it changed something
}

const (
	// deletes is a deletion in the key of a request, and deletesVersion one with a version as precondition.
	deletes        = "delete"
	deletesVersion = "delete_version"
)

// faultPoints returns the requests of a clean run that can have a fault, in an order that is the
// same in every run: reads, or writes that changed something.
func faultPoints(requests []request, f fault) []request {
	points := slices.DeleteFunc(slices.Clone(requests), func(r request) bool { return !f.concerns(r) || !r.read && !r.changes })
	slices.SortStableFunc(points, func(a, b request) int {
		return cmp.Or(cmp.Compare(a.round, b.round), strings.Compare(a.actor, b.actor), strings.Compare(a.key, b.key))
	})
	return points
}

// write does a write of our process, or its fault in the plan or the mode.
func (p *process) write(verb, sub string, object client.Object, do func(client.Object) error) error {
	w := p.simulation
	p.requests.Lock()
	defer p.requests.Unlock()
	if err := p.reach(kindOf(object)); err != nil {
		return err
	}
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

// read does a read of our process from the API server, or returns an error.
func (p *process) read(object any, name string, do func() error) error {
	w := p.simulation
	p.requests.Lock()
	defer p.requests.Unlock()
	if err := p.reach(kindOf(object)); err != nil {
		return err
	}
	key := w.count("read", name, object)
	r := request{round: w.rounds, actor: w.server.actor, key: key, read: true}
	w.requests = append(w.requests, r)
	if f, hit := w.faultAt(r); hit {
		p.restart = p.restart || f.restart
		return apierrors.NewInternalError(errors.New("the API server has a problem"))
	}
	return do()
}

// count returns the key of a request.
func (w *simulation) count(verb, sub string, object any) string {
	name := ""
	if object, single := object.(client.Object); single {
		name = object.GetName()
	}
	what := strings.TrimSpace(fmt.Sprintf("%s %s/%s %s", verb, kindOf(object), name, sub))
	w.counted[what]++
	return fmt.Sprintf("%s #%d", what, w.counted[what])
}

// faultAt returns the fault of a request; false if it has none.
func (w *simulation) faultAt(r request) (fault, bool) {
	f, hit := w.mode.faultAt(r)
	if r.key == w.plan.request {
		f, hit, w.hit = w.plan.fault, true, true
	}
	if hit {
		w.tracef("FAULT %s: %s", f.name, r.key)
	}
	return f, hit
}

// suffer does one write with a fault.
func (p *process) suffer(f fault, verb, key string, object client.Object, do func(client.Object) error) error {
	w := p.simulation
	w.down = f.down
	p.restart = p.restart || f.restart
	switch {
	case f.before:
		p.dead = true
		return errDead
	case f.after:
		_ = do(object)
		p.dead = true
		return errDead
	case f.late > 0:
		w.late = append(w.late, lateWrite{at: w.clock.Now().Add(f.late), actor: w.server.actor, key: key, object: object.DeepCopyObject().(client.Object), do: do})
		return apierrors.NewTimeoutError("the write may or may not be applied", 0)
	case f.leads > 0:
		w.handOver(p, f)
		return do(object)
	case f.applied:
		if err := do(object); err != nil {
			return err
		}
		return apierrors.NewTimeoutError("the write was applied, and the response is lost", 0)
	case f.fails:
		return apierrors.NewInternalError(errors.New("the API server has a problem"))
	}
	// A conflict is with a write of another client, which causes an event.
	resource := resourceOf(object)
	if verb == "create" {
		if err := do(object); err != nil {
			return err
		}
		return apierrors.NewAlreadyExists(resource, object.GetName())
	}
	w.touch(object)
	return apierrors.NewConflict(resource, object.GetName(), errors.New("another client has written"))
}

// lateWrite is a write that the server has received and not applied yet.
type lateWrite struct {
	at         time.Time
	actor, key string
	object     client.Object
	do         func(client.Object) error
}

// doLate applies the writes that are due. Nothing receives the response.
func (w *simulation) doLate() {
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

// touch is a write of another client that has no meaning.
func (w *simulation) touch(object client.Object) {
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
	w.server.actor = "another client"
	must(w.live().Update(context.Background(), touched))
	w.server.actor = before
}

const touchedAnnotation = "crash.test/touched"
