// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podTimes is what happened to a Pod.
type podTimes struct {
	created, bound, running time.Time
	node                    string
}

// nodeTimes is what happened to a Node.
type nodeTimes struct {
	created time.Time
	// free is when its last taint was removed.
	free time.Time
}

// replicasAt is a sum of the replicas of all MachineDeployments, and when it was reached.
type replicasAt struct {
	replicas int32
	at       time.Time
}

// step is one step of the way from a Pod to where it runs.
type step struct {
	Name         string       `json:"name"`
	Distribution distribution `json:"distribution"`
}

// way is what happened for one claim, in order. Times that are zero are unknown.
type way struct {
	// asked is the Pod that the claim was created for: each needs one, and the oldest comes first. pod is that which runs on
	// its Node, which can be a younger one.
	asked, pod                                                  podTimes
	claim, launched, raised, machine, linked, identified, known time.Time
	node, registered, free                                      time.Time
}

// The names of the steps.
const (
	podToClaim         = "Pod created → claim created (Karpenter's batch)"
	claimToLaunch      = "claim created → launched"
	launchToReplicas   = "claim launched → replicas written"
	claimToReplicas    = "claim created → replicas written"
	replicasToMachine  = "replicas written → Machine created (Cluster API)"
	claimToMachine     = "claim created → Machine created"
	machineToLink      = "Machine created → link"
	machineIDToClaimID = "Machine has its provider ID → claim has it"
	machineToNode      = "Machine created → Node created"
	claimToNode        = "claim created → Node created"
	nodeToRegistered   = "Node created → claim registered"
	registeredToFree   = "claim registered → last taint gone"
	freeToBound        = "last taint gone → Pod bound"
	boundToRunning     = "Pod bound → running"
	podToRunning       = "Pod created → running"
)

// stepsOf are the steps, each with the times at which it begins and ends.
var stepsOf = []struct {
	name     string
	from, to func(*way) time.Time
}{
	{podToClaim, func(w *way) time.Time { return w.asked.created }, func(w *way) time.Time { return w.claim }},
	{claimToLaunch, func(w *way) time.Time { return w.claim }, func(w *way) time.Time { return w.launched }},
	{launchToReplicas, func(w *way) time.Time { return w.launched }, func(w *way) time.Time { return w.raised }},
	{claimToReplicas, func(w *way) time.Time { return w.claim }, func(w *way) time.Time { return w.raised }},
	{replicasToMachine, func(w *way) time.Time { return w.raised }, func(w *way) time.Time { return w.machine }},
	{claimToMachine, func(w *way) time.Time { return w.claim }, func(w *way) time.Time { return w.machine }},
	{machineToLink, func(w *way) time.Time { return w.machine }, func(w *way) time.Time { return w.linked }},
	{machineIDToClaimID, func(w *way) time.Time { return w.identified }, func(w *way) time.Time { return w.known }},
	{machineToNode, func(w *way) time.Time { return w.machine }, func(w *way) time.Time { return w.node }},
	{claimToNode, func(w *way) time.Time { return w.claim }, func(w *way) time.Time { return w.node }},
	{nodeToRegistered, func(w *way) time.Time { return w.node }, func(w *way) time.Time { return w.registered }},
	{registeredToFree, func(w *way) time.Time { return w.registered }, func(w *way) time.Time { return w.free }},
	{freeToBound, func(w *way) time.Time { return w.free }, func(w *way) time.Time { return w.pod.bound }},
	{boundToRunning, func(w *way) time.Time { return w.pod.bound }, func(w *way) time.Time { return w.pod.running }},
	{podToRunning, func(w *way) time.Time { return w.asked.created }, func(w *way) time.Time { return w.asked.running }},
}

// steps returns how long each step took, of those that were observed. A duration is negative if the order was another one.
func (t *timeline) steps() []step {
	ways := t.ways()
	var steps []step
	for _, s := range stepsOf {
		var durations []time.Duration
		for i := range ways {
			if from, to := s.from(&ways[i]), s.to(&ways[i]); !from.IsZero() && !to.IsZero() {
				durations = append(durations, to.Sub(from))
			}
		}
		if len(durations) > 0 {
			steps = append(steps, step{s.name, distributionOf(durations)})
		}
	}
	return steps
}

// ways returns the way of each claim. The replicas of a claim are the first with which there are as many as claims that are
// as old.
func (t *timeline) ways() []way {
	t.mu.Lock()
	defer t.mu.Unlock()
	byNode := map[string]podTimes{}
	for _, pod := range t.pods {
		if first, known := byNode[pod.node]; pod.node != "" && (!known || pod.bound.Before(first.bound)) {
			byNode[pod.node] = *pod
		}
	}
	pods := slices.SortedFunc(maps.Values(t.pods), func(a, b *podTimes) int { return a.created.Compare(b.created) })
	byClaim := map[types.UID]*machineTimes{}
	for _, machine := range t.machines {
		if machine.claim != "" {
			byClaim[machine.claim] = machine
		}
	}
	claims := make([]types.UID, 0, len(t.claims))
	for uid := range t.claims {
		claims = append(claims, uid)
	}
	slices.SortFunc(claims, func(a, b types.UID) int { return t.claims[a].created.Compare(t.claims[b].created) })
	ways := make([]way, 0, len(claims))
	for i, uid := range claims {
		claim := t.claims[uid]
		w := way{claim: claim.created, launched: claim.launched, registered: claim.registered, known: claim.identified}
		if machine := byClaim[uid]; machine != nil {
			w.machine, w.linked, w.identified = machine.created, machine.linked, machine.identified
			w.raised = t.raisedTo(int32(i + 1))
		}
		if node := t.byName[claim.node]; node != nil {
			w.node, w.free = node.created, node.free
		}
		w.pod = byNode[claim.node]
		if i < len(pods) {
			w.asked = *pods[i]
		}
		ways = append(ways, w)
	}
	return ways
}

// raisedTo returns when there were that many replicas, beside those that existed before the load.
func (t *timeline) raisedTo(replicas int32) time.Time {
	for _, raise := range t.raises {
		if raise.replicas >= t.standing+replicas {
			return raise.at
		}
	}
	return time.Time{}
}

// noteNode records when a Node was created, and when its last taint was removed.
func (t *timeline) noteNode(node *corev1.Node, now time.Time) {
	times := t.byName[node.Name]
	if times == nil {
		times = &nodeTimes{created: now}
		t.byName[node.Name] = times
	}
	switch {
	case len(node.Spec.Taints) > 0:
		times.free = time.Time{}
	case times.free.IsZero():
		times.free = now
	}
}
