// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"time"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

// Timings are how long the operator waits if no event shows what it waits for.
type Timings struct {
	// Settle is the time after which an infrastructure provider of MachinePools must have
	// seen a write, because no provider reports what it has seen. It is long for a watch.
	Settle time.Duration
	// ReadyPoll is the interval at which the operator reads the infrastructure object of a
	// MachinePool while no Machines can be created from it. The operator watches only the
	// MachinePool, and its event can arrive before the change of the infrastructure object.
	ReadyPoll time.Duration
	// Probe is the time after which replicas that were lowered for a blocked MachineSet count
	// leaving Machines again, to see whether it is still blocked. Cluster API has the same
	// interval (core/reconcilers/machineset/machineset_preflight.go,
	// preflightFailedRequeueAfter).
	Probe time.Duration
	// NoProgress is the time after which the operator reports an object that no controller
	// acts on. Controllers act within seconds, and no event shows that one does not.
	NoProgress time.Duration
	// Recovery is the time after the last disturbance of the management cluster in which the caches of
	// other controllers have recovered.
	Recovery time.Duration
	// RecoveryLimit is for how long MachinePools wait at most while disturbances follow each other, not
	// counting the time in which the management cluster cannot be reached.
	RecoveryLimit time.Duration
}

// ProductionTimings returns the timings of the operator. Only tests use others.
func ProductionTimings() Timings {
	return Timings{
		Settle:     10 * time.Second,
		ReadyPoll:  5 * time.Second,
		Probe:      15 * time.Second,
		NoProgress: 30 * time.Second,
		Recovery:   connection.Recovery,

		RecoveryLimit: 15 * time.Minute,
	}
}
