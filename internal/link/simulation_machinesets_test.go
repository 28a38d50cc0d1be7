// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/test/model"
)

// setsWorld is a MachineDeployment with several MachineSets, and those who act on them.
// Cluster API's controllers are one process, whose caches of MachineDeployments and
// MachineSets lag behind; the operator's caches lag behind by themselves. What a lagging
// cache of Machines does to a MachineSet is the same however many there are, see
// TestSimulationCounts.
type setsWorld struct {
	random  *rand.Rand
	step    int
	trace   *[]string
	failure string
	// oneEquation is the Scaling of a single MachineSet, which is wrong here.
	oneEquation bool

	claims   map[types.UID]bool
	named    int
	now      snapshot
	history  []snapshot
	process  seen // what Cluster API's caches have
	operator seen // what ours have
}

// snapshot is what the API server has at one time. Each part has its own version.
type snapshot struct {
	md       simDeployment
	sets     []simSet
	machines []setMachine
}

type simDeployment struct {
	replicas             int32
	template             int // is raised by users who change it
	generation, observed int
}

type simSet struct {
	name                 string
	template             int
	replicas, machines   int32
	current              bool
	generation, observed int
}

type setMachine struct {
	Machine
	set            string
	created        int // when, by the versions of the API server
	deleting, hook bool
}

// seen are the times at which caches have seen the parts of a snapshot.
type seen struct{ md, sets, machines int }

func newSets(seed int64) *setsWorld {
	return &setsWorld{random: rand.New(rand.NewSource(seed)), claims: map[types.UID]bool{}, history: []snapshot{{}}}
}

// newTracedSets runs an interleaving again, and returns what happened.
func newTracedSets(seed int64) string {
	w := newSets(seed)
	w.trace = &[]string{}
	w.run()
	return strings.Join(*w.trace, "\n")
}

func (w *setsWorld) tracef(format string, values ...any) {
	if w.trace != nil {
		*w.trace = append(*w.trace, fmt.Sprintf("%d ", w.step)+fmt.Sprintf(format, values...))
	}
}

// wrote ends a write.
func (w *setsWorld) wrote() {
	w.history = append(w.history, snapshot{w.now.md, slices.Clone(w.now.sets), slices.Clone(w.now.machines)})
}

func (w *setsWorld) view(s seen) snapshot {
	return snapshot{w.history[s.md].md, slices.Clone(w.history[s.sets].sets), slices.Clone(w.history[s.machines].machines)}
}

// run begins with Machines in two MachineSets, lets everybody act in random order, with
// caches that lag behind, and then all in turn.
func (w *setsWorld) run() {
	for range 2 {
		w.now.md.template++
		w.now.md.generation++
		for range 2 + w.random.Intn(3) {
			w.createClaim()
		}
		w.settle()
	}
	for w.step < 300 && w.failure == "" {
		w.step++
		switch w.random.Intn(12) {
		case 0:
			w.user()
		case 1, 2:
			w.catchUp(&w.process)
		case 3, 4:
			w.catchUp(&w.operator)
		case 5, 6:
			w.deploy()
		case 7, 8:
			w.create()
		case 9:
			w.boot()
		default:
			w.operate()
		}
	}
	w.settle()
	if w.failure == "" && (len(w.now.machines) != len(w.claims) || int(w.now.md.replicas) != len(w.claims)) {
		w.failure = fmt.Sprintf("in the end there are %d Machines and %d replicas for %d claims", len(w.now.machines), w.now.md.replicas, len(w.claims))
	}
}

// settle lets all act in turn, on fresh caches.
func (w *setsWorld) settle() {
	for range 20 {
		for _, act := range []func(){w.operate, w.deploy, w.create, w.boot} {
			latest := len(w.history) - 1
			w.process, w.operator = seen{latest, latest, latest}, seen{latest, latest, latest}
			act()
		}
		w.step++
	}
}

func (w *setsWorld) catchUp(s *seen) {
	some := func(at *int) { *at += w.random.Intn(len(w.history) - *at) }
	switch w.random.Intn(3) {
	case 0:
		some(&s.md)
	case 1:
		some(&s.sets)
	case 2:
		some(&s.machines)
	}
}

// user makes or ends a claim, or changes the template of the MachineDeployment. The Machine
// of a claim that ends is marked at once.
//
// The template is not changed while a MachineSet is short of Machines: Cluster API then
// lowers the replicas of that one to the number in its status, which may be behind, so
// that it deletes what it has just created.
func (w *setsWorld) user() {
	switch w.random.Intn(8) {
	case 0:
		if !w.complete() {
			return
		}
		w.now.md.template++
		w.now.md.generation++
		w.tracef("changes the template")
	case 1, 2, 3:
		w.createClaim()
	default:
		for i := range w.now.machines {
			if m := &w.now.machines[i]; m.Claim != "" && w.claims[m.Claim] && w.random.Intn(3) == 0 {
				delete(w.claims, m.Claim)
				m.Chosen, m.Leaving = true, true
				w.tracef("deletes claim %s and marks %s in %s", m.Claim, m.Name, m.set)
				break
			}
		}
	}
	w.wrote()
}

func (w *setsWorld) createClaim() {
	w.named++
	w.claims[types.UID(fmt.Sprint("c", w.named))] = true
	w.tracef("creates claim c%d", w.named)
}

// complete reports whether Cluster API knows of all Machines that were asked for.
func (w *setsWorld) complete() bool {
	sets := w.history[w.process.sets].sets
	return w.now.md.observed == w.now.md.generation && len(sets) == len(w.now.sets) &&
		!slices.ContainsFunc(sets, func(s simSet) bool {
			return s != *w.set(s.name) || int(s.replicas) > int(s.machines) || int(s.machines) != lenOf(w.now.machines, s.name)
		})
}

// deploy is the MachineDeployment controller. It writes all of a MachineSet, as it is in its
// cache but for what it changes.
func (w *setsWorld) deploy() {
	v := w.view(w.process)
	if !slices.ContainsFunc(v.sets, func(s simSet) bool { return s.template == v.md.template }) {
		if !slices.ContainsFunc(w.now.sets, func(s simSet) bool { return s.template == v.md.template }) {
			v.sets = append(v.sets, simSet{name: fmt.Sprint("s", v.md.template), template: v.md.template})
			w.now.sets = append(w.now.sets, v.sets[len(v.sets)-1])
		} else {
			return // it waits for what it has created itself
		}
	}
	var current model.Set
	var older []model.Set
	for _, s := range v.sets {
		if set := (model.Set{Replicas: s.replicas, Machines: s.machines}); s.template == v.md.template {
			current = set
		} else {
			older = append(older, set)
		}
	}
	newCurrent, newOlder := model.MachineDeploymentOnDelete(v.md.replicas, current, older)
	for _, s := range v.sets {
		isCurrent := s.template == v.md.template
		want := newCurrent
		if !isCurrent {
			want, newOlder = newOlder[0], newOlder[1:]
		}
		set := w.set(s.name)
		if set.replicas != want {
			w.tracef("MachineDeployment gives %s %d replicas, which had %d", s.name, want, set.replicas)
			set.replicas = want
			set.generation++
		}
		set.current = isCurrent
	}
	w.now.md.observed = max(w.now.md.observed, v.md.generation)
	w.wrote()
}

// create is the MachineSet controller, for all MachineSets.
func (w *setsWorld) create() {
	v := w.view(w.process)
	v.machines = slices.Clone(w.now.machines)
	for _, s := range v.sets {
		var machines []model.Machine
		for _, m := range v.machines {
			if m.set == s.name {
				machines = append(machines, model.Machine{Name: m.Name, Created: m.Created, Deleting: m.deleting, DeleteAnnotation: m.Chosen, Healthy: m.Used})
			}
		}
		create, remove := model.MachineSet(s.replicas, false, machines)
		for _, name := range remove {
			w.remove(name, s)
		}
		// It waits for what it has created itself.
		own := len(machines) == lenOf(w.now.machines, s.name)
		for i := int32(0); s.current && own && i < create; i++ {
			w.named++
			m := setMachine{Machine: machine(fmt.Sprint("m", w.named), w.step), set: s.name, created: len(w.history)}
			w.now.machines = append(w.now.machines, m)
			w.tracef("%s creates %s", s.name, m.Name)
		}
		set := w.set(s.name)
		set.observed, set.machines = max(set.observed, s.generation), int32(len(machines))
	}
	w.wrote()
}

func lenOf(machines []setMachine, set string) (count int) {
	for _, m := range machines {
		if m.set == set {
			count++
		}
	}
	return count
}

func (w *setsWorld) remove(name string, by simSet) {
	m := w.machine(name)
	if m == nil || m.deleting {
		return
	}
	w.tracef("%s with %d replicas deletes %s", by.name, by.replicas, name)
	if m.Used && !m.Chosen {
		w.failure = fmt.Sprintf("%s deletes Machine %s, which nobody has marked", by.name, name)
	}
	m.deleting, m.Leaving = true, true
}

// boot is the infrastructure: Machines of claims become Nodes, and deleted ones disappear.
// The caches of Cluster API do not lag behind for as long as it takes to become a Node.
func (w *setsWorld) boot() {
	for i := range w.now.machines {
		m := &w.now.machines[i]
		m.Used = m.Used || m.Claim != "" && !m.Leaving && m.created <= min(w.process.md, w.process.sets)
	}
	w.now.machines = slices.DeleteFunc(w.now.machines, func(m setMachine) bool { return m.deleting && !m.hook })
	w.wrote()
}

func (w *setsWorld) set(name string) *simSet {
	return &w.now.sets[slices.IndexFunc(w.now.sets, func(s simSet) bool { return s.name == name })]
}

func (w *setsWorld) machine(name string) *setMachine {
	if i := slices.IndexFunc(w.now.machines, func(m setMachine) bool { return m.Name == name }); i >= 0 {
		return &w.now.machines[i]
	}
	return nil
}
