// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"slices"
	"time"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// The conditions that the steps of scripts wait for.

// replicas waits until a scalable resource has these replicas.
func replicas(replicas int32) func(*simulation) bool {
	return func(w *simulation) bool {
		for _, object := range w.server.head["MachineDeployment"] {
			if lo.FromPtr(object.(*clusterv1.MachineDeployment).Spec.Replicas) == replicas {
				return true
			}
		}
		for _, object := range w.server.head["MachinePool"] {
			if lo.FromPtr(object.(*clusterv1.MachinePool).Spec.Replicas) == replicas {
				return true
			}
		}
		return false
	}
}

func gone(claim string) func(*simulation) bool {
	return func(w *simulation) bool { return w.claim(claim) == nil }
}

// released waits until a Machine is unlinked and serves no claim.
func released(w *simulation) bool {
	return slices.ContainsFunc(w.machines(), func(m *clusterv1.Machine) bool { return m.Annotations[v1alpha1.SpareSinceAnnotation] != "" })
}

// served waits until the given number of claims have a Machine.
func served(claims int) func(*simulation) bool {
	return func(w *simulation) bool {
		return lo.CountBy(w.machines(), func(m *clusterv1.Machine) bool { _, serves := w.serves(m); return serves }) == claims
	}
}

// withID waits until the given number of live claims have the provider ID of a Machine.
func withID(claims int) func(*simulation) bool {
	return func(w *simulation) bool {
		return lo.CountBy(w.claims(), func(c *karpv1.NodeClaim) bool { return c.DeletionTimestamp.IsZero() && w.kindOfID(c) == "own" }) == claims
	}
}

func wants(claims int) func(*simulation) bool {
	return func(w *simulation) bool { return w.wanted == claims }
}

// later waits for some time after the step before.
func later(d time.Duration) func(*simulation) bool {
	return func(w *simulation) bool { return w.clock.Since(w.lastStep) >= d }
}

// terminating waits until the given number of Machines are being deleted.
func terminating(machines int) func(*simulation) bool {
	return func(w *simulation) bool {
		return lo.CountBy(w.machines(), func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() }) == machines
	}
}

// launched waits until the given number of live claims are launched, and registered until they have
// their Node.
func launched(claims int) func(*simulation) bool { return having(karpv1.ConditionTypeLaunched, claims) }
func registered(claims int) func(*simulation) bool {
	return having(karpv1.ConditionTypeRegistered, claims)
}

func having(condition string, claims int) func(*simulation) bool {
	return func(w *simulation) bool {
		return lo.CountBy(w.claims(), func(c *karpv1.NodeClaim) bool {
			return c.DeletionTimestamp.IsZero() && c.StatusConditions().Get(condition).IsTrue()
		}) == claims
	}
}
