// SPDX-License-Identifier: Apache-2.0

package operator

import "time"

// Timings are the times that the operator waits when no event shows what it waits for.
type Timings struct {
	// Settle is the time after which an infrastructure provider of MachinePools has seen a
	// write: nothing reports what it has seen. It is long for a watch.
	Settle time.Duration
	// ReadyPoll is the interval at which the infrastructure object of a MachinePool is read
	// while no Machines can be created from it. The operator watches the MachinePool only,
	// and its event can arrive first.
	ReadyPoll time.Duration
	// Probe is the time after which replicas that were lowered for a blocked MachineSet count
	// leaving Machines again, to see whether it still is blocked. Cluster API checks as often
	// (core/reconcilers/machineset/machineset_preflight.go, preflightFailedRequeueAfter).
	Probe time.Duration
	// NoProgress is the time after which an object that no controller acts on is reported.
	// Controllers act within seconds; only the passing of time shows that one does not.
	NoProgress time.Duration
}

// ProductionTimings returns the timings of the operator. Only tests have others.
func ProductionTimings() Timings {
	return Timings{
		Settle:     10 * time.Second,
		ReadyPoll:  5 * time.Second,
		Probe:      15 * time.Second,
		NoProgress: 30 * time.Second,
	}
}
