// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"math/rand"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/test/model"
)

// simClaim is a NodeClaim in the API server.
type simClaim struct {
	uid                            types.UID
	name                           string
	created                        time.Time
	version                        int
	providerID                     string
	launched, registered, deleting bool
}

func (c simClaim) forDecide() Claim {
	return Claim{UID: c.uid, Name: c.name, Created: c.created, ProviderID: c.providerID,
		NeedsMachine: c.launched && !c.registered && !c.deleting, Leaving: c.deleting}
}

// simMachine is a Machine in the API server.
type simMachine struct {
	Machine          // without Leaving and Expired, which are computed
	claimName        string
	version          int
	chosen, deleting bool
	// hook holds it up, if it has a Node or is one of a pool, while it is being deleted.
	hook bool
	// spareSince is the step since which it serves no claim.
	spareSince int
}

// spareSteps is for how many steps a spare Machine is kept.
const spareSteps = 20

// probeSteps is after how many steps replicas count leaving Machines again.
const probeSteps = 30

func (w *world) forDecide(m simMachine) Machine {
	m.Leaving = m.chosen || m.deleting
	m.Expired = w.step-m.spareSince >= spareSteps
	m.Chosen, m.Held = m.chosen, m.hook
	m.Settled = w.pool != nil && m.chosen && w.providerKnows(m.Name)
	return m.Machine
}

// simReplicas are a MachineDeployment's or a MachineSet's.
type simReplicas struct {
	replicas int32
	// from is, in a MachineSet, the newest version of the MachineDeployment whose
	// replicas it has; observed tells whether its controller has acted on its generation.
	from, generation int
	observed         bool
	// blocked tells, in a MachineSet, that its preflight checks kept it from making any of
	// the Machines that it lacked when it had these many.
	blocked  bool
	machines int
	// lowered tells, in a MachineDeployment, that its replicas were lowered because the
	// MachineSet was blocked, and since is the step of that.
	lowered bool
	since   int
	// decidedFrom is, in a MachineDeployment, the newest version of the Machines from
	// which its replicas were decided.
	decidedFrom int
}

// history holds all versions of one kind's objects; a cache is an index into it.
type history[T any] []T

func (h history[T]) latest() int { return len(h) - 1 }
func (h history[T]) now() T      { return h[len(h)-1] }

// The actors. Those up to numCaches read from caches of their own. With a pool, that of
// MachineDeployments is the one of MachinePools, and that of MachineSets the provider.
const (
	core = iota
	machineDeployment
	machineSet
	linker
	scaler
	numCaches
	infrastructure = iota - 1
	user
)

var actorNames = []string{"core", "MachineDeployment", "MachineSet", "linker", "scaler", "infrastructure", "user"}

// view is what one actor's caches have.
type view struct{ claims, machines, md, ms int }

// options of a world.
type options struct {
	// laggingMachineSet lets the MachineSet controller see new replicas with Machines
	// that are older than those which the replicas were decided from.
	laggingMachineSet bool
	// deletedBooting lets a user delete also Machines without a Node, which nothing
	// holds up: they vanish at any moment.
	deletedBooting bool
	// pool is how the provider of a pool behaves; nil for a MachineDeployment.
	pool *model.PoolProvider
	// own is how many Machines the resource has when it is adopted.
	own int
	// blocks lets the MachineSet's preflight checks fail now and then.
	blocks bool
	// laggingLinker lets the linker see, while checks fail now and then, new Machines with
	// replicas that are older than those which were on their way to the MachineSet.
	laggingLinker bool
	// trace records what happens.
	trace bool
}

// adopted is when a resource with Machines of its own was adopted.
var adopted = start.Add(-time.Minute)

// world is everything there is in one simulation.
type world struct {
	options
	random *rand.Rand

	claims   history[[]simClaim]
	machines history[[]simMachine]
	md, ms   history[simReplicas]
	nodes    map[string]bool // provider IDs of the Nodes that joined
	views    [numCaches]view
	// blocked tells that the MachineSet's preflight checks fail.
	blocked bool
	// instances are those of a pool; its replicas are in md.
	instances []simInstance
	// ownWrites is the version of Machines that holds all writes of the MachineSet
	// controller: it waits until its cache has them.
	ownWrites int

	actor   int // whose step it is
	step    int
	version int
	writes  int
	crash   int // writes until the actor crashes; negative: never
	made    int // objects made
	// owner is the claim that a provider ID's Machine was linked to last.
	owner map[string]types.UID

	failure string
	victims []int // the steps in which the MachineSet deleted a serving Machine
	log     []string
}

func newWorld(seed int64, opts options) *world {
	replicas := simReplicas{replicas: int32(opts.own)}
	w := &world{options: opts, random: rand.New(rand.NewSource(seed)), crash: -1,
		claims: history[[]simClaim]{nil}, machines: history[[]simMachine]{nil},
		md: history[simReplicas]{replicas}, ms: history[simReplicas]{replicas},
		nodes: map[string]bool{}, owner: map[string]types.UID{}}
	for i := range opts.own {
		m := Machine{Name: fmt.Sprintf("own%d", i), Created: adopted, ProviderID: fmt.Sprintf("real://own%d", i), Used: true}
		w.machines[0] = append(w.machines[0], simMachine{Machine: m, version: w.wrote()})
		w.nodes[m.ProviderID] = true
	}
	return w
}

// isOwn tells whether a Machine was there before the resource was adopted.
func isOwn(m simMachine) bool { return !m.Created.After(adopted) }

func (w *world) now() time.Time { return start.Add(time.Duration(w.step/32) * time.Second) }

func (w *world) tracef(format string, args ...any) {
	if w.trace {
		w.log = append(w.log, fmt.Sprintf("%3d %s: ", w.step, actorNames[w.actor])+fmt.Sprintf(format, args...))
	}
}

// fail records the first broken invariant.
func (w *world) fail(format string, args ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf("step %d, %s: ", w.step, actorNames[w.actor]) + fmt.Sprintf(format, args...)
		w.tracef("BROKEN: "+format, args...)
	}
}

// crashed tells whether the actor crashes before its next write.
func (w *world) crashed() bool {
	if w.crash == 0 {
		return true
	}
	w.crash--
	return false
}

func (w *world) wrote() int {
	w.writes++
	w.version++
	return w.version
}

func (w *world) claim(uid types.UID) (simClaim, bool) {
	for _, c := range w.claims.now() {
		if c.uid == uid {
			return c, true
		}
	}
	return simClaim{}, false
}

// updateClaim changes a claim if it is there and, unless the version is 0, in that
// version. It returns false for not found or a conflict.
func (w *world) updateClaim(uid types.UID, version int, change func(*simClaim)) bool {
	for i, c := range w.claims.now() {
		if c.uid != uid {
			continue
		}
		if version != 0 && version != c.version {
			w.tracef("conflict on claim %s", uid)
			return false
		}
		changed := c
		change(&changed)
		if changed != c {
			changed.version = w.wrote()
			next := slices.Clone(w.claims.now())
			next[i] = changed
			w.claims = append(w.claims, next)
			w.tracef("claim %s launched=%t registered=%t deleting=%t %s", uid, changed.launched, changed.registered, changed.deleting, changed.providerID)
		}
		return true
	}
	return false
}

// updateMachine is updateClaim for a Machine.
func (w *world) updateMachine(name string, version int, change func(*simMachine)) bool {
	for i, m := range w.machines.now() {
		if m.Name != name {
			continue
		}
		if version != 0 && version != m.version {
			w.tracef("conflict on Machine %s", name)
			return false
		}
		changed := m
		change(&changed)
		if changed != m {
			changed.version = w.wrote()
			next := slices.Clone(w.machines.now())
			next[i] = changed
			w.machines = append(w.machines, next)
			if changed.ProviderID != "" {
				w.owner[changed.ProviderID] = changed.Claim
			}
			w.tracef("Machine %s claim=%s id=%q used=%t chosen=%t deleting=%t", name, changed.Claim, changed.ProviderID, changed.Used, changed.chosen, changed.deleting)
		}
		return true
	}
	return false
}

// serves returns the live claim that a Machine serves: the claim it is linked to,
// unless another Machine is the one that the claim keeps.
func (w *world) serves(m simMachine) (types.UID, bool) {
	c, found := w.claim(m.Claim)
	if !found || c.deleting || m.deleting || m.chosen {
		return "", false
	}
	for _, other := range w.machines.now() {
		if other.Name == m.Name || other.Claim != m.Claim || other.deleting || other.chosen || m.ProviderID != "" && m.ProviderID == c.providerID {
			continue
		}
		older := other.Created.Before(m.Created) || other.Created.Equal(m.Created) && other.Name < m.Name
		if older || other.ProviderID != "" && other.ProviderID == c.providerID {
			return "", false
		}
	}
	return c.uid, true
}

// check checks what must hold at every moment.
func (w *world) check() {
	claimOf := map[string]types.UID{}
	for _, c := range w.claims.now() {
		if other, shared := claimOf[c.providerID]; shared && c.providerID != "" {
			w.fail("claims %s and %s share provider ID %s", other, c.uid, c.providerID)
		}
		claimOf[c.providerID] = c.uid
		// A claim that is being deleted may have released its Machine.
		if c.providerID != "" && c.providerID != ProvisionalID(c.uid) && w.owner[c.providerID] != c.uid && !c.deleting {
			w.fail("claim %s has provider ID %s of a Machine that is linked to claim %q", c.uid, c.providerID, w.owner[c.providerID])
		}
	}
}

// checkSettled checks what must hold when all has settled.
func (w *world) checkSettled() {
	claims, machines := w.claims.now(), w.machines.now()
	for _, c := range claims {
		var own []string
		for _, m := range machines {
			if m.Claim == c.uid && !m.deleting && !m.chosen {
				own = append(own, m.Name)
				if m.ProviderID != c.providerID {
					w.fail("settled: claim %s has provider ID %s, its Machine %s has %s", c.uid, c.providerID, m.Name, m.ProviderID)
				}
			}
		}
		if len(own) != 1 || c.deleting || !c.registered {
			w.fail("settled: claim %s, deleting=%t registered=%t, has Machines %v", c.uid, c.deleting, c.registered, own)
		}
	}
	made := int(w.ms.now().replicas)
	if w.pool != nil {
		made = len(w.instances)
	}
	if want := len(claims) + w.own; len(machines) != want || int(w.md.now().replicas) != want || made != want {
		w.fail("settled: %d claims, %d Machines, replicas %d, of the MachineSet or instances %d", len(claims), len(machines), w.md.now().replicas, made)
	}
}
