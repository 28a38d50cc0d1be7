// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"math/rand"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/test/harness/model"
)

// simClaim is a NodeClaim. It is launched from its creation on, and Leaving while it is being deleted.
// NeedsMachine is computed.
type simClaim struct {
	Claim
	registered bool
}

// String is short, for the log.
func (c simClaim) String() string {
	return fmt.Sprintf("NodeClaim %s id=%s registered=%t leaving=%t", c.UID, c.ProviderID, c.registered, c.Leaving)
}

// simMachine is a Machine. Its Leaving, LeavingSince and SpareSince are computed.
type simMachine struct {
	Machine
	set      string // its MachineSet
	deleting bool
	// drain is the hook that blocks the deletion of a Machine with a Node. Hooked is the one that
	// blocks any deletion.
	drain bool
	// joined reports whether the Node has joined. HasNode follows later.
	joined bool
	// spareSince is the step since which the Machine serves no claim.
	spareSince int
}

func (m simMachine) leaving() bool { return m.Marked || m.deleting }

// String is short, for the log.
func (m simMachine) String() string {
	text := fmt.Sprintf("Machine %s claim=%s id=%s set=%s", m.Name, m.Claim, m.ProviderID, m.set)
	for _, flag := range []struct {
		name string
		is   bool
	}{
		{"joined", m.joined}, {"has-node", m.HasNode}, {"unfit", m.unfit()}, {"unlinked", m.WasLinked}, {"marked", m.Marked},
		{"deleting", m.deleting}, {"hooked", m.Hooked}, {"drain", m.drain}, {"instance-gone", m.InstanceGone},
	} {
		if flag.is {
			text += " " + flag.name
		}
	}
	return text
}

// simDeployment is a MachineDeployment, or a MachinePool.
type simDeployment struct {
	replicas   int32
	generation int
	// lowered reports whether replicas were lowered because the MachineSet was blocked, in the
	// step loweredAt. since is the step in which replicas were last set.
	lowered          bool
	loweredAt, since int
	// decidedFrom is the version of the Machines that replicas were computed from. countedFrom is
	// older if the previous replicas had not been passed on.
	decidedFrom, countedFrom int
}

// simSet is a MachineSet. machines and blocked are in its status.
type simSet struct {
	name                 string
	replicas, machines   int32
	blocked              bool
	generation, observed int
	// See simDeployment.
	decidedFrom, countedFrom int
}

// simInstance is an instance of a pool. Only its provider sees it.
type simInstance struct {
	name           string
	machine, going bool // Cluster API has created its Machine; it is being deleted
}

// snapshot is one version of all objects in the API server.
type snapshot struct {
	claims   []simClaim
	machines []simMachine
	md       simDeployment
	sets     []simSet
}

func (s snapshot) clone() snapshot {
	return snapshot{slices.Clone(s.claims), slices.Clone(s.machines), s.md, slices.Clone(s.sets)}
}

func (s snapshot) equal(other snapshot) bool {
	return slices.Equal(s.claims, other.claims) && slices.Equal(s.machines, other.machines) &&
		s.md == other.md && slices.Equal(s.sets, other.sets)
}

// caches have one version of each kind of object.
type caches struct{ claims, machines, md, sets int }

// options of a simulation.
type options struct {
	// pool is how the provider of a MachinePool behaves; nil for a MachineDeployment.
	pool *model.PoolProvider
	// own is the number of unmanaged Machines, which the resource has when it is adopted.
	own int
	// blocks lets the preflight checks of the MachineSet fail at times.
	blocks bool
	// orphans lets booting Machines of a MachineSet lose their infrastructure object.
	orphans bool
	// forgets lets the operator link a second Machine to a claim. A new process can do that if its
	// caches lack the first link.
	forgets bool
	// laggingMachineSet lets the MachineSet see older Machines than those from which its replicas
	// were computed. Then a Machine of a live claim can be deleted. A test counts these losses.
	laggingMachineSet bool
	// bug is a planted bug: it changes what the planner reads. Nil for none.
	bug func(*State)
}

func (o options) isKind() bool { return !o.laggingMachineSet }

// adopted is when a resource with unmanaged Machines was adopted.
var adopted = start.Add(-time.Minute)

// The durations of the operator, in steps.
const (
	spareSteps = 20 // spareTTLSeconds
	probeSteps = 30 // until replicas count leaving Machines again
)

// simulation is the state of one simulation.
type simulation struct {
	options
	random *rand.Rand

	now       snapshot
	history   []snapshot
	operator  caches
	provider  caches // those of Cluster API's controllers, which are one process, or of the pool's provider
	ownWrites int    // the version with all Machines that the MachineSets have created or deleted
	blocked   bool
	instances []simInstance
	pending   []decision
	lost      map[string]bool // Machines that can disappear although replicas count them

	step, made int
	actor      string
	failure    string
	victims    int      // number of serving Machines that were deleted
	trace      bool     // whether a log is written
	log        []string // what happened
}

func newWorld(seed int64, opts options) *simulation {
	w := &simulation{options: opts, random: rand.New(rand.NewSource(seed)), lost: map[string]bool{}}
	if w.now.md.replicas = int32(opts.own); opts.pool == nil {
		w.now.sets = []simSet{{name: "s1", replicas: int32(opts.own)}}
	}
	for i := range opts.own {
		m := simMachine{Machine: Machine{Name: fmt.Sprintf("own%d", i), Created: adopted, HasNode: true}, set: "s1", joined: true}
		m.ProviderID = "real://" + m.Name
		w.now.machines = append(w.now.machines, m)
	}
	w.history = []snapshot{w.now.clone()}
	return w
}

func (w *simulation) time() time.Time { return start.Add(time.Duration(w.step/32) * time.Second) }
func (w *simulation) latest() int     { return len(w.history) - 1 }

// isOrphan reports whether a Machine of a MachineSet has lost its infrastructure object.
func (w *simulation) isOrphan(m simMachine) bool { return w.pool == nil && m.InstanceGone }

// wrote ends the step of an actor. Its changes are a new version.
func (w *simulation) wrote() {
	before := w.history[w.latest()]
	if w.now.equal(before) {
		return
	}
	w.history = append(w.history, w.now.clone())
	if w.trace {
		logChanges(w, before.claims, w.now.claims)
		logChanges(w, before.machines, w.now.machines)
		logChanges(w, []simDeployment{before.md}, []simDeployment{w.now.md})
		logChanges(w, before.sets, w.now.sets)
	}
}

// logChanges logs which objects have changed.
func logChanges[T comparable](w *simulation, before, after []T) {
	for _, object := range before {
		if !slices.Contains(after, object) {
			w.tracef("- %+v", object)
		}
	}
	for _, object := range after {
		if !slices.Contains(before, object) {
			w.tracef("+ %+v", object)
		}
	}
}

func (w *simulation) tracef(format string, args ...any) {
	if w.trace {
		w.log = append(w.log, fmt.Sprintf("%3d %s ", w.step, w.actor)+fmt.Sprintf(format, args...))
	}
}

// fail records the first broken invariant.
func (w *simulation) fail(format string, args ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf("step %d, %s: ", w.step, w.actor) + fmt.Sprintf(format, args...)
		w.tracef("BROKEN: %s", w.failure)
	}
}

// view returns what caches have.
func (w *simulation) view(c caches) snapshot {
	return snapshot{w.history[c.claims].claims, w.history[c.machines].machines, w.history[c.md].md, w.history[c.sets].sets}
}

// catchUp moves the cache of one kind of object to a random version that is not older.
func (w *simulation) catchUp(c *caches) {
	at := []*int{&c.claims, &c.machines, &c.md, &c.sets}[w.random.Intn(4)]
	*at += w.random.Intn(len(w.history) - *at)
}

func (w *simulation) refresh(c *caches) { *c = caches{w.latest(), w.latest(), w.latest(), w.latest()} }

func find[T any](objects []T, is func(T) bool) *T {
	if i := slices.IndexFunc(objects, is); i >= 0 {
		return &objects[i]
	}
	return nil
}

func (w *simulation) claim(uid types.UID) *simClaim {
	return find(w.now.claims, func(c simClaim) bool { return c.UID == uid })
}

func (w *simulation) machine(name string) *simMachine {
	return find(w.now.machines, func(m simMachine) bool { return m.Name == name })
}

func (w *simulation) set(name string) *simSet {
	return find(w.now.sets, func(s simSet) bool { return s.name == name })
}
