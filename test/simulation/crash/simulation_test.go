// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

const (
	// round is the time in which everything acts once.
	round = time.Second
	// quiet is how long nothing must happen before the simulation counts as settled: longer than any
	// wait, except that for the end of an empty MachineDeployment.
	quiet = 6 * time.Minute
	// longest is the time after which a simulation should have settled.
	longest = 2 * time.Hour
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// simulation is one run of a scenario: the API server, the peers, and our process.
type simulation struct {
	clock    *clocktesting.FakeClock
	server   *server
	scaling  *scaling
	provider *cache   // the cache of an infrastructure provider of MachinePools
	capi     *cache   // the cache of Cluster API's controllers of MachineDeployments and MachineSets
	process  *process // nil while no process runs
	old      *process // a process that still acts while another one leads
	oldUntil time.Time
	mode     *mode

	// skew is by how much the clock of the operator's machine is ahead, and jumped how often it was set.
	skew   time.Duration
	jumped int
	// outages are those of each cluster.
	outages map[string]*outage
	// hasty lets our process treat pools as settled at once.
	hasty bool

	// Set by a scenario.
	script       []step
	known        []string                      // kinds of which a new process sees no older state
	wanted       int                           // claims that the Pods need
	machineLimit int                           // the limit of the Machines of a MachineSet or MachinePool
	blocked      bool                          // whether preflight checks fail
	holds        func() bool                   // whether Machines make no progress
	alone        func() bool                   // whether no Node joins
	keeps        func() bool                   // whether deleted Machines are not removed
	fails        func(*clusterv1.Machine) bool // which Machines can never be launched

	mutant *mutant // the bug that our process has, if any

	// The fault, and the writes.
	plan     plan
	hit      bool
	down     time.Duration
	startAt  time.Time
	counted  map[string]int
	requests []request
	late     []lateWrite
	// executesLate is set while one of these is applied.
	executesLate bool

	rounds     int
	lastStep   time.Time
	lastChange time.Time
	owners     map[string][]types.UID // the claims that the Machines of a provider ID were linked to
	ledger     ledger
	ended      map[string]bool // the Machines that were not ended by the operator
	own        map[string]bool // the Machines that existed before a MachineDeployment was adopted
	failure    string
	trace      []event
}

// event is one line of a trace, formatted when it is printed.
type event struct {
	at    time.Time
	actor string
	text  string
	what  *change
}

func newWorld(s *server, clock *clocktesting.FakeClock, scaling *scaling) *simulation {
	w := &simulation{
		clock: clock, server: s, scaling: scaling, mode: &mode{}, machineLimit: many, counted: map[string]int{},
		owners: map[string][]types.UID{}, ended: map[string]bool{}, lastChange: clock.Now(), ledger: newLedger(),
		outages: map[string]*outage{connection.Management: {}, connection.Workload: {}},
	}
	w.provider = newCache(s, providerKinds, providerBound, nil, nil)
	w.capi = newCache(s, capiKinds, capiBound, nil, nil)
	s.check = w.changed
	return w
}

// clone returns a simulation that continues from here, with a new process.
func (w *simulation) clone() *simulation {
	clock := clocktesting.NewFakeClock(w.clock.Now())
	c := newWorld(w.server.clone(clock), clock, w.scaling)
	c.wanted, c.owners, c.own, c.hasty = w.wanted, maps.Clone(w.owners), w.own, w.hasty
	return c
}

// run lets everything act until the simulation has settled, or something is wrong.
func (w *simulation) run() {
	begin := w.clock.Now()
	for w.failure == "" && (len(w.script) > 0 || w.process == nil || w.old != nil || len(w.late) > 0 || w.clock.Since(w.lastChange) < quiet || w.awaitsNode() || w.clusterExists() && w.clusterEnds()) {
		if w.clock.Since(begin) > longest {
			w.fail("it does not settle")
		}
		w.round()
	}
	if w.failure == "" {
		w.checkSettled()
	}
}

// awaitsNode reports whether core still waits for the Node of a claim, in a mode in which provider IDs are used again: core
// can delete such a Node with an old claim in its cache that had the same ID. Then it gives up on the new claim after
// registrationTimeout.
func (w *simulation) awaitsNode() bool {
	return w.mode.reused && slices.ContainsFunc(w.claims(), func(claim *karpv1.NodeClaim) bool {
		launched := claim.StatusConditions().Get(karpv1.ConditionTypeLaunched)
		return claim.DeletionTimestamp.IsZero() && launched.IsTrue() && !claim.StatusConditions().Get(karpv1.ConditionTypeRegistered).IsTrue() &&
			w.clock.Since(launched.LastTransitionTime.Time) < registrationTimeout+quiet
	})
}

// round lets everything act once.
func (w *simulation) round() {
	w.rounds++
	w.disturb()
	if w.isOut(connection.Management) || w.isOut(connection.Workload) {
		w.processes()
		if !w.isOut(connection.Management) {
			w.peers()
		}
		w.clock.Step(round)
		return
	}
	w.doLate()
	w.server.actor = "user"
	for len(w.script) > 0 && w.isDue(w.script[0]) {
		w.tracef("STEP %s", w.script[0].what)
		w.script[0].do(w)
		w.script, w.lastStep, w.lastChange = w.script[1:], w.clock.Now(), w.clock.Now()
	}
	w.release()
	w.processes()
	w.peers()
	w.clock.Step(w.untilNext())
}

// peers lets Cluster API and the infrastructure act.
func (w *simulation) peers() {
	if w.paused() {
		return
	}
	w.endCluster()
	for _, peer := range w.scaling.peers {
		if !w.mode.skips() {
			peer(w)
		}
	}
}

// processes lets the leading process act, and one that still acts without leading.
func (w *simulation) processes() {
	out := w.isOut(connection.Management) || w.isOut(connection.Workload) // then no process gets its caches filled
	if w.process == nil && !w.clock.Now().Before(w.startAt) && !out {
		w.process = newProcess(w)
	}
	if w.old != nil && !w.clock.Now().Before(w.oldUntil) {
		w.stop(w.old, "knows that another leads")
	}
	if w.old != nil {
		w.old.step()
	}
	if w.process != nil && w.clock.Since(w.lastChange) < staleBound && w.mode.restarts() {
		w.stop(w.process, "restarts")
	} else if w.process != nil {
		w.process.step()
	}
}

// untilNext returns a round, or more if nothing happens in that time.
func (w *simulation) untilNext() time.Duration {
	if w.process == nil || len(w.process.lost) > 0 || w.old != nil || len(w.late) > 0 || w.clock.Since(w.lastChange) < 30*round {
		return round
	}
	next := 30 * time.Second
	for _, c := range w.process.controllers {
		for _, due := range c.due {
			next = min(next, due.Sub(w.clock.Now()))
		}
	}
	return max(next, round)
}

// handOver lets another process lead from now on, while this one continues for some time.
func (w *simulation) handOver(p *process, f fault) {
	if p == w.old {
		return
	}
	w.tracef("another process leads")
	w.old, w.oldUntil = p, w.clock.Now().Add(f.leads)
	w.process, w.startAt = nil, w.clock.Now()
	p.cache.outdated, p.cache.halfBlind = w.oldUntil, f.halfBlind
}

// stop ends a process and discards what it had in memory.
func (w *simulation) stop(p *process, how string) {
	if p == w.old {
		w.tracef("the old process %s", how)
		w.old, w.down = nil, 0
		return
	}
	w.tracef("the process %s", how)
	w.process = nil
	w.startAt = w.clock.Now().Add(w.down)
	w.down = 0
}

// changed checks and traces a change.
func (w *simulation) changed(c *change) {
	w.lastChange = w.clock.Now()
	w.trace = append(w.trace, event{at: c.at, actor: c.actor, what: c})
	w.check(c)
}

func (w *simulation) tracef(format string, args ...any) {
	w.trace = append(w.trace, event{at: w.clock.Now(), actor: w.server.actor, text: fmt.Sprintf(format, args...)})
}

// fail records the first thing that is wrong.
func (w *simulation) fail(format string, args ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
		w.tracef("BROKEN: %s", w.failure)
	}
}

func (w *simulation) paused() bool {
	cluster, exists := w.server.head["Cluster"][prod.Name].(*clusterv1.Cluster)
	return exists && lo.FromPtr(cluster.Spec.Paused)
}

// claims returns all claims, by name. They are not to be modified.
func (w *simulation) claims() []*karpv1.NodeClaim {
	return lo.Map(sortedNames(w.server.head["NodeClaim"]), func(name string, _ int) *karpv1.NodeClaim { return w.claim(name) })
}

func (w *simulation) claim(name string) *karpv1.NodeClaim {
	if object, found := w.server.head["NodeClaim"][name]; found {
		return object.(*karpv1.NodeClaim)
	}
	return nil
}

// made returns how many objects of a kind were created.
func (w *simulation) made(kind string) int {
	return lo.CountBy(w.server.log[kind], func(c *change) bool { return c.before == nil })
}

// machines returns all Machines, by name. They are not to be modified.
func (w *simulation) machines() []*clusterv1.Machine {
	return lo.Map(sortedNames(w.server.head["Machine"]), func(name string, _ int) *clusterv1.Machine {
		return w.server.head["Machine"][name].(*clusterv1.Machine)
	})
}

// machine returns a Machine; nil if there is none. It is not to be modified.
func (w *simulation) machine(name string) *clusterv1.Machine {
	if object, found := w.server.head["Machine"][name]; found {
		return object.(*clusterv1.Machine)
	}
	return nil
}

// machinesOf returns the Machines of a MachineSet, by name. They are not to be modified.
func machinesOf(v view, set string) []*clusterv1.Machine {
	var found []*clusterv1.Machine
	for _, name := range sortedNames(v["Machine"]) {
		if machine := v["Machine"][name].(*clusterv1.Machine); machine.Labels[clusterv1.MachineSetNameLabel] == set {
			found = append(found, machine)
		}
	}
	return found
}

func (w *simulation) template() *v1alpha1.KarpenterMachineTemplate {
	return w.server.head["KarpenterMachineTemplate"][templateName].(*v1alpha1.KarpenterMachineTemplate)
}

func (w *simulation) deployment(name string) *clusterv1.MachineDeployment {
	return w.server.head["MachineDeployment"][name].DeepCopyObject().(*clusterv1.MachineDeployment)
}

// setOf returns the MachineSet of a MachineDeployment.
func setOf(v view, deployment string) *clusterv1.MachineSet {
	for _, object := range v["MachineSet"] {
		if deploymentOf(object) == deployment {
			return object.DeepCopyObject().(*clusterv1.MachineSet)
		}
	}
	return nil
}

// lastOf returns the end of a trace.
func (w *simulation) lastOf(lines int) string {
	var text strings.Builder
	for _, e := range w.trace[max(0, len(w.trace)-lines):] {
		if e.what != nil {
			e.text = describe(e.what)
		}
		fmt.Fprintf(&text, "%6s %-16s %s\n", e.at.Sub(start).Round(time.Second), e.actor, e.text)
	}
	return text.String()
}

func (w *simulation) live() live { return live{server: w.server} }

func sortedNames[T any](objects map[string]T) []string { return slices.Sorted(maps.Keys(objects)) }
