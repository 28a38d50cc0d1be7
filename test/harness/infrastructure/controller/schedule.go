// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
	"time"

	"k8s.io/apimachinery/pkg/types"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// progress is which steps of an instance are done.
type progress struct {
	hasProviderID bool
	provisioned   bool
	joined        bool
}

// steps is what must be done for an instance now.
type steps struct {
	// fail reports the failure of an instance that never gets a provider ID.
	fail bool
	// setProviderID comes first, and alone.
	setProviderID bool
	// reportProvisioned and joinNode follow, in any order.
	reportProvisioned bool
	joinNode          bool
	// next is how long to wait for the first step that is not due yet; zero if none is left, or if one that is due must
	// be done first.
	next time.Duration
}

// schedule is when the steps of one instance's life are due.
type schedule struct {
	fails       bool
	providerID  time.Time
	provisioned time.Time
	nodeJoin    time.Time
}

// scheduleOf returns the schedule of the instance that was started at start. It depends only on its arguments, so a
// restart does not change it.
func scheduleOf(spec *infrav1.SimulatedMachineSpec, uid types.UID, start time.Time) schedule {
	providerID := start.Add(delayOf(spec.Delays.ProviderID, uid, "providerID"))
	provisioned := start.Add(delayOf(spec.Delays.Provisioning, uid, "provisioning"))
	// According to the contract, the provider ID is set before the machine is provisioned: Cluster API's core copies
	// both together, and slows down for a provisioned machine without an ID.
	if provisioned.Before(providerID) {
		provisioned = providerID
	}
	return schedule{
		fails:       spec.Failure != nil && share(uid, "failure", 100) < uint64(max(0, spec.Failure.Percent)),
		providerID:  providerID,
		provisioned: provisioned,
		nodeJoin:    providerID.Add(delayOf(spec.Delays.NodeJoin, uid, "nodeJoin")),
	}
}

// at returns what must be done at a time for an instance with the progress done. A step that was done is never returned
// again, and an instance with a provider ID no longer fails.
func (s schedule) at(now time.Time, done progress) steps {
	var result steps
	due := func(t time.Time) bool {
		wait := t.Sub(now)
		if wait <= 0 {
			return true
		}
		if result.next == 0 || wait < result.next {
			result.next = wait
		}
		return false
	}
	if !done.hasProviderID {
		isDue := due(s.providerID)
		result.fail, result.setProviderID = isDue && s.fails, isDue && !s.fails
		return result
	}
	result.reportProvisioned = !done.provisioned && due(s.provisioned)
	result.joinNode = !done.joined && due(s.nodeJoin)
	return result
}

// terminationDelay is how long the termination of the instance takes.
func terminationDelay(spec *infrav1.SimulatedMachineSpec, uid types.UID) time.Duration {
	return delayOf(spec.Delays.Termination, uid, "termination")
}

// delayOf returns the duration plus this instance's share of the jitter.
func delayOf(delay infrav1.Delay, uid types.UID, step string) time.Duration {
	duration, jitter := max(0, delay.Duration.Duration), max(0, delay.Jitter.Duration)
	extra := time.Duration(share(uid, step, uint64(jitter)))
	if extra > math.MaxInt64-duration {
		return math.MaxInt64
	}
	return duration + extra
}

// share maps an instance to a number in [0, n), uniformly over all UIDs; n = 0 gives 0.
func share(uid types.UID, salt string, n uint64) uint64 {
	sum := sha256.Sum256([]byte(salt + "/" + string(uid)))
	high, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]), n)
	return high
}
