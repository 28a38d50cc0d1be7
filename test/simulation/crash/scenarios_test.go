// SPDX-License-Identifier: Apache-2.0

package crash

import "time"

// scenario is what happens to a cluster.
type scenario struct {
	name string
	// of are the kinds of scalable resources that it covers.
	of []*scaling
	// before is how many claims exist and have their Node when it begins.
	before int
	script []step
	// machines is how many Machines a clean run creates, and left how many exist at the end.
	machines, left int
	// known are the kinds of which a new process never sees an older state.
	known []string
}

// step is something that happens as soon as its condition is met.
type step struct {
	what string
	when func(*simulation) bool
	do   func(*simulation)
}

var scenarios = []scenario{{
	name:     "scale_out",
	of:       bothKinds,
	script:   []step{{"10 claims are wanted", atOnce, want(10)}},
	machines: 10, left: 10,
}, {
	name:   "replace",
	of:     scalings,
	before: 10,
	script: []step{{"3 of 10 are deleted while 2 are created", atOnce, all(want(9), deleteClaims("claim-02", "claim-05", "claim-06"))}},
	// The 2 new claims get their Machines before any of the 3 can be deleted.
	machines: 2, left: 9,
}, {
	name:   "slow_end",
	of:     scalings,
	before: 3,
	script: []step{
		{"2 of 3 are deleted, and their Machines take long", atOnce, all(slowUntil(registered(2)), want(1), deleteClaims("claim-01", "claim-03"))},
		{"1 is created, and must not wait for that", terminating(2), want(2)},
	},
	machines: 1, left: 2,
}, {
	name:   "slow_controller",
	of:     []*scaling{machineDeployment},
	before: 3,
	script: []step{
		{"2 of 3 are deleted, and their Machines take long", atOnce, all(slowUntil(registered(2)), want(1), deleteClaims("claim-01", "claim-03"))},
		{"1 is created, which the MachineDeployment controller does not see at once", terminating(2), all(slowToSee(10*time.Second), want(2))},
	},
	machines: 1, left: 2,
}, {
	name: "failure",
	of:   bothKinds,
	script: []step{
		// All have their offering by then: a claim that is launched later would immediately be
		// launched with another one.
		{"3 claims are created, and when all have a Machine, 1 fails", atOnce, all(holdUntil(served(3)), failOne, want(3))},
	},
	machines: 4, left: 3,
	// Otherwise it would not know that the offering has failed, and core would launch the next
	// claim with it again, which costs one try and is harmless.
	known: []string{"KarpenterMachineTemplate"},
}, {
	name: "early_delete",
	of:   bothKinds,
	script: []step{
		{"a claim is created, and Cluster API is slow", atOnce, all(makesAtMost(0), want(1))},
		{"the claim is deleted before its Machine appears", replicas(1), all(want(0), deleteClaims("claim-01"))},
		{"the Machine appears", gone("claim-01"), makesAtMost(many)},
	},
	machines: 1, left: 0,
}, {
	name: "race",
	of:   bothKinds,
	script: []step{
		{"2 claims are created for 1 Machine", atOnce, all(makesAtMost(1), want(2))},
		{"the other Machine appears later", served(1), makesAtMost(many)},
	},
	machines: 2, left: 2,
}, {
	name: "race_and_delete",
	of:   scalings,
	script: []step{
		{"2 claims are created for 1 Machine, which is deleted slowly, and spare ones are not kept", atOnce, all(keepSpares(0), makesAtMost(1), slowUntil(registered(1)), want(2))},
		{"the claim that got it is deleted, and the other must not wait for that", both(launched(2), served(1)), all(makesAtMost(many), want(1), deleteLinked)},
	},
	machines: 2, left: 1,
	// Because spare ones are not kept, a new process that knew the Machine but not its claims would
	// delete it, which costs one more.
	known: []string{"NodeClaim"},
}, {
	name: "hand_over",
	of:   bothKinds,
	script: []step{
		{"2 claims are created for 1 Machine", atOnce, all(makesAtMost(1), noNodeUntil(both(wants(1), withID(1))), want(2))},
		{"the claim that got it is deleted when it has its provider ID and no Node yet", withID(1), all(want(1), deleteLinked)},
		{"the other has it, and the second Machine appears when no claim needs it", registered(1), makesAtMost(many)},
	},
	machines: 2, left: 1,
}, {
	name: "spare",
	of:   bothKinds,
	script: []step{
		{"a claim is created, and spare Machines are kept for 12 s", atOnce, all(keepSpares(12*time.Second), noNodeUntil(both(gone("claim-01"), served(1))), want(1))},
		{"it is deleted before its Machine has a Node", served(1), all(want(0), deleteClaims("claim-01"))},
		{"another is created, and gets that Machine", both(released, later(5*time.Second)), want(1)},
	},
	machines: 1, left: 1,
}, {
	name: "adopt",
	of:   []*scaling{machineDeployment},
	script: []step{
		{"a MachineDeployment with 2 Machines exists", atOnce, existing(2)},
		// Everything has seen it by then: without it, claims would not be launched.
		{"2 claims are created", both(ownAreNodes(2), later(2*staleBound)), all(areOwn, want(2))},
		{"1 is deleted", registered(2), all(want(1), deleteClaims("claim-01"))},
	},
	machines: 4, left: 3,
}, {
	// Only for pools, which keep such a Machine and create a replacement. A MachineSet sometimes
	// creates one more, as in scenario replace, even after a single fault.
	name:     "deleted_by_hand",
	of:       pools,
	before:   3,
	script:   []step{{"a user deletes the Machine of 1 of 3", atOnce, deleteMachineOf("claim-02")}},
	machines: 1, left: 3,
}, {
	name: "deleted_while_booting",
	of:   onePool,
	script: []step{
		{"3 claims are created", atOnce, all(holdUntil(ended), want(3))},
		{"a user deletes the Machine of 1 of them", served(3), deleteMachineOf("claim-02")},
	},
	machines: 4, left: 3,
}, {
	name:   "deleted_while_leaving",
	of:     pools,
	before: 4,
	script: []step{
		{"1 of 4 is deleted while a user deletes the Machine of another", atOnce, all(want(3), deleteClaims("claim-01"), deleteMachineOf("claim-02"))},
	},
	machines: 1, left: 3,
}, {
	name:     "instance_ends",
	of:       onePool,
	before:   3,
	script:   []step{{"the instance of 1 of 3 fails", atOnce, endInstance(serving)}},
	machines: 1, left: 3,
}, {
	name:   "leaving_instance_ends",
	of:     pools,
	before: 3,
	script: []step{
		{"1 of 3 is deleted", atOnce, all(want(2), deleteClaims("claim-02"))},
		{"its instance fails before the provider must have seen the lower replicas", replicas(2), endInstance(chosen)},
	},
	left: 2,
}, {
	name:   "blocked",
	of:     []*scaling{machineDeployment},
	before: 3,
	script: []step{
		{"the control plane is upgraded, and 1 is created", atOnce, all(blocked(true), want(4))},
		{"2 of 3 are deleted", replicas(4), all(want(2), deleteClaims("claim-01", "claim-03"))},
		// Long after the time in which the operator would set the offering to unavailable.
		{"the upgrade ends", later(12 * time.Minute), blocked(false)},
	},
	machines: 1, left: 2,
}, {
	name:   "blocked_briefly",
	of:     []*scaling{machineDeployment},
	before: 2,
	script: []step{
		{"the control plane is upgraded, and 1 is created", atOnce, all(blocked(true), want(3))},
		{"1 of 2 is deleted", replicas(3), all(want(2), deleteClaims("claim-01"))},
		{"the upgrade ends while its Machine is leaving", terminating(1), blocked(false)},
	},
	machines: 1, left: 2,
}, {
	name:   "pause",
	of:     bothKinds,
	before: 3,
	script: []step{
		{"2 claims are created, and Cluster API is slow", atOnce, all(makesAtMost(3), want(5))},
		{"the Cluster is paused before their Machines appear", both(launched(5), replicas(5)), pause(true)},
		// Everything has seen the pause by then.
		{"1 that has a Node is deleted, and 1 that has no Machine", later(2 * staleBound), all(want(3), deleteClaims("claim-02", "claim-05"))},
		// Both wait: while the Cluster is paused, an absent Machine proves nothing.
		{"the Cluster is resumed", later(time.Second), pause(false)},
		{"the Machines appear", gone("claim-05"), makesAtMost(many)},
	},
	machines: 2, left: 3,
}, {
	name:     "interrupted",
	of:       bothKinds,
	before:   3,
	script:   []step{{"a termination handler announces the end of the instance of 1 of 3", atOnce, interrupt("claim-02")}},
	machines: 1, left: 3,
}, {
	name:   "overwritten",
	of:     onePool,
	before: 2,
	script: []step{
		{"Cluster API restores the taints of a Node, and the operator is upgraded, while 1 is created", atOnce, all(undo("claim-01"), ofEarlierRelease("claim-02"), want(3))},
	},
	machines: 1, left: 3,
}, {
	name:   "copy_deleted",
	of:     []*scaling{machineDeployment},
	before: 1,
	script: []step{
		{"a copy of the base template is left that nothing refers to", atOnce, leaveCopy},
		{"that one is deleted, and a user deletes the one in use", copyGone, deleteCopy},
	},
	left: 1,
}, {
	name:   "cluster_deleted",
	of:     bothKinds,
	before: 3,
	script: []step{
		{"1 of 3 is deleted, and its Machine takes long", atOnce, all(want(2), slowUntil((*simulation).clusterEnds), deleteClaims("claim-02"))},
		{"the Cluster is deleted while 1 is created", replicas(2), all(want(3), deleteCluster)},
	},
}}
