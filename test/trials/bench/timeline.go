// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// timeline has the times at which this process saw what happened to the objects. All times are of one clock, because
// timestamps of objects have only whole seconds.
type timeline struct {
	mu       sync.Mutex
	machines map[types.UID]*machineTimes
	nodes    map[string]time.Time // by provider ID: when the Node was created
	claims   map[types.UID]*claimTimes
	// relinks are the links that were changed to another claim.
	relinks int
	pods    map[types.UID]*podTimes
	byName  map[string]*nodeTimes // by the name of the Node
	// replicas are those of each MachineDeployment, and raises how their sum grew.
	replicas map[types.UID]int32
	raises   []replicasAt

	tallies map[tallyName]*tally

	// aside are the objects that existed before the load, which are not recorded, and standing are their replicas.
	aside    map[types.UID]struct{}
	standing int32
}

// machineTimes is what happened to a Machine.
type machineTimes struct {
	name            string
	created, linked time.Time
	claim           types.UID
	// identified is when Cluster API set its provider ID.
	identified time.Time
}

// claimTimes is what happened to a NodeClaim.
type claimTimes struct {
	name    string
	created time.Time
	// identified is when it got the provider ID of its Machine.
	identified time.Time
	providerID string
	// launched is when core had launched it.
	launched time.Time
	// registered is when Karpenter core had registered its Node, and node the name of that.
	registered time.Time
	node       string
	writes     claimWrites
	last       *karpv1.NodeClaim
}

// tallyName names a set of objects.
type tallyName string

// The sets.
const (
	podsRunning       tallyName = "pods running"
	claimsPresent     tallyName = "claims"
	claimsInitialized tallyName = "claims initialized"
	machinesPresent   tallyName = "machines"
	instancesPresent  tallyName = "instances"
	nodesPresent      tallyName = "nodes"
	nodesReady        tallyName = "nodes ready"
)

var tallyNames = []tallyName{podsRunning, claimsPresent, claimsInitialized, machinesPresent, instancesPresent, nodesPresent, nodesReady}

// tally is a set of objects that have something in common now.
type tally struct {
	members map[types.UID]struct{}
	// changed is when the last object was added or removed.
	changed time.Time
}

func (t *tally) set(uid types.UID, member bool, now time.Time) {
	if _, is := t.members[uid]; is == member {
		return
	}
	t.changed = now
	if member {
		t.members[uid] = struct{}{}
	} else {
		delete(t.members, uid)
	}
}

func newTimeline() *timeline {
	t := &timeline{
		machines: map[types.UID]*machineTimes{}, nodes: map[string]time.Time{}, claims: map[types.UID]*claimTimes{},
		pods: map[types.UID]*podTimes{}, byName: map[string]*nodeTimes{}, replicas: map[types.UID]int32{},
		tallies: map[tallyName]*tally{},
	}
	for _, name := range tallyNames {
		t.tallies[name] = &tally{members: map[types.UID]struct{}{}}
	}
	return t
}

// reset forgets everything, except for the replicas that MachineDeployments have. Nothing else must exist.
func (t *timeline) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := newTimeline()
	t.machines, t.nodes, t.claims, t.relinks, t.pods, t.byName, t.raises, t.tallies =
		fresh.machines, fresh.nodes, fresh.claims, fresh.relinks, fresh.pods, fresh.byName, fresh.raises, fresh.tallies
}

// setAside forgets all objects that are members of a set, and never records them again.
func (t *timeline) setAside() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.aside = map[types.UID]struct{}{}
	for _, tally := range t.tallies {
		maps.Copy(t.aside, tally.members)
	}
	t.standing = lo.Sum(lo.Values(t.replicas))
}

// isAside reports whether an object existed before the load.
func (t *timeline) isAside(uid types.UID) bool {
	_, is := t.aside[uid]
	return is
}

// reached reports whether each set has the given number of objects, and when that became so.
func (t *timeline) reached(want map[tallyName]int) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var at time.Time
	for name, count := range want {
		if len(t.tallies[name].members) != count {
			return time.Time{}, false
		}
		if changed := t.tallies[name].changed; changed.After(at) {
			at = changed
		}
	}
	return at, true
}

// counts returns the number of objects in each set.
func (t *timeline) counts() map[tallyName]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := map[tallyName]int{}
	for name, tally := range t.tallies {
		counts[name] = len(tally.members)
	}
	return counts
}

// observePod records a version of a Pod. deleted is whether it was the last one.
func (t *timeline) observePod(pod *corev1.Pod, deleted bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isAside(pod.UID) {
		return
	}
	running := pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero()
	t.tallies[podsRunning].set(pod.UID, running && !deleted, now)
	times := t.pods[pod.UID]
	if times == nil {
		times = &podTimes{created: now}
		t.pods[pod.UID] = times
	}
	if times.node == "" && pod.Spec.NodeName != "" {
		times.node, times.bound = pod.Spec.NodeName, now
	}
	if times.running.IsZero() && running {
		times.running = now
	}
}

// observeNode records a version of a Node.
func (t *timeline) observeNode(node *corev1.Node, deleted bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isAside(node.UID) {
		return
	}
	t.noteNode(node, now)
	t.tallies[nodesPresent].set(node.UID, !deleted, now)
	ready := false
	for _, condition := range node.Status.Conditions {
		ready = ready || condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	}
	t.tallies[nodesReady].set(node.UID, ready && !deleted, now)
	if _, known := t.nodes[node.Spec.ProviderID]; !known {
		t.nodes[node.Spec.ProviderID] = now
	}
}

// observeMachineDeployment records a version of a MachineDeployment.
func (t *timeline) observeMachineDeployment(deployment *clusterv1.MachineDeployment, deleted bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.replicas[deployment.UID] = lo.FromPtr(deployment.Spec.Replicas)
	if deleted {
		delete(t.replicas, deployment.UID)
	}
	sum := lo.Sum(lo.Values(t.replicas))
	if len(t.raises) == 0 || sum > t.raises[len(t.raises)-1].replicas {
		t.raises = append(t.raises, replicasAt{sum, now})
	}
}

// observeInstance records a version of the metadata of a simulated machine.
func (t *timeline) observeInstance(instance *metav1.PartialObjectMetadata, deleted bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isAside(instance.UID) {
		return
	}
	t.tallies[instancesPresent].set(instance.UID, !deleted, now)
}

// observeMachine records a version of a Machine.
func (t *timeline) observeMachine(machine *clusterv1.Machine, deleted bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isAside(machine.UID) {
		return
	}
	t.tallies[machinesPresent].set(machine.UID, !deleted, now)
	times := t.machines[machine.UID]
	if times == nil {
		times = &machineTimes{name: machine.Name, created: now}
		t.machines[machine.UID] = times
	}
	if times.identified.IsZero() && machine.Spec.ProviderID != "" {
		times.identified = now
	}
	switch claim := lifecycle.ClaimUID(machine); {
	case claim == "" || claim == times.claim:
	case times.claim == "":
		times.claim, times.linked = claim, now
	default:
		times.claim = claim
		t.relinks++
	}
}

// observeClaim records a version of a NodeClaim.
func (t *timeline) observeClaim(claim *karpv1.NodeClaim, deleted bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isAside(claim.UID) {
		return
	}
	t.tallies[claimsPresent].set(claim.UID, !deleted, now)
	initialized := claim.StatusConditions().IsTrue(karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized) && claim.DeletionTimestamp.IsZero()
	t.tallies[claimsInitialized].set(claim.UID, initialized && !deleted, now)
	times := t.claims[claim.UID]
	if times == nil {
		times = &claimTimes{name: claim.Name, created: now}
		t.claims[claim.UID] = times
	}
	if times.last != nil && times.last.ResourceVersion != claim.ResourceVersion && !deleted {
		times.writes.add(times.last, claim)
	}
	times.last = claim
	if times.launched.IsZero() && claim.StatusConditions().IsTrue(karpv1.ConditionTypeLaunched) {
		times.launched = now
	}
	if times.registered.IsZero() && claim.StatusConditions().IsTrue(karpv1.ConditionTypeRegistered) {
		times.registered = now
	}
	times.node = cmp.Or(claim.Status.NodeName, times.node)
	if id := claim.Status.ProviderID; times.identified.IsZero() && isReal(id) {
		times.identified, times.providerID = now, id
	}
}

// isReal reports whether a provider ID is that of a machine, and not the provisional one of a claim.
func isReal(providerID string) bool {
	_, provisional := planner.ParseProvisionalID(providerID)
	return !provisional && strings.TrimSpace(providerID) != ""
}

// untilLink returns how long each linked Machine existed before it was linked.
func (t *timeline) untilLink() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var durations []time.Duration
	for _, machine := range t.machines {
		if !machine.linked.IsZero() {
			durations = append(durations, machine.linked.Sub(machine.created))
		}
	}
	return durations
}

// untilProviderID returns how long each Node existed before its claim got the provider ID. A duration is negative if the
// claim got it before the Node existed.
func (t *timeline) untilProviderID() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var durations []time.Duration
	for _, claim := range t.claims {
		if node, known := t.nodes[claim.providerID]; known && !claim.identified.IsZero() {
			durations = append(durations, claim.identified.Sub(node))
		}
	}
	return durations
}

// sinceMachine returns how long each claim had no provider ID although its Machine was linked and had one: what remains
// of untilProviderID without the time that Cluster API needs.
func (t *timeline) sinceMachine() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var durations []time.Duration
	for _, machine := range t.machines {
		claim := t.claims[machine.claim]
		if claim == nil || claim.identified.IsZero() || machine.identified.IsZero() {
			continue
		}
		known := machine.identified
		if machine.linked.After(known) {
			known = machine.linked
		}
		durations = append(durations, claim.identified.Sub(known))
	}
	return durations
}

// claimWrites returns the sum of the writes of all claims.
func (t *timeline) claimWrites() claimWrites {
	t.mu.Lock()
	defer t.mu.Unlock()
	var sum claimWrites
	for _, claim := range t.claims {
		sum.Own += claim.writes.Own
		sum.Core += claim.writes.Core
	}
	return sum
}

// lines lists the times of each Machine and claim, for those who look for the reason of a long time.
func (t *timeline) lines() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := func(at time.Time) string {
		if at.IsZero() {
			return none
		}
		return at.Format("15:04:05.000")
	}
	var lines []string
	for _, machine := range t.machines {
		lines = append(lines, fmt.Sprintf("%s Machine %s linked %s to %s, got its provider ID %s", text(machine.created), machine.name, text(machine.linked), machine.claim, text(machine.identified)))
	}
	for uid, claim := range t.claims {
		lines = append(lines, fmt.Sprintf("%s NodeClaim %s (%s) got %s %s, its Node was created %s", text(claim.created), claim.name, uid, claim.providerID, text(claim.identified), text(t.nodes[claim.providerID])))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}
