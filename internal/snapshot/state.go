// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// state returns the input of the planner.
func (s *Snapshot) state() planner.State {
	state := planner.State{
		Scaling: s.scaling,
		Claims:  make([]planner.Claim, 0, len(s.Claims)), Machines: make([]planner.Machine, 0, len(s.Machines)),
	}
	if s.Resource != nil {
		state.Replicas = s.Resource.Replicas()
		state.UnmanagedUntil, state.Unmanaged = scalable.Adoption(s.Resource)
	}
	for i := range s.Claims {
		claim := &s.Claims[i]
		state.Claims = append(state.Claims, planner.Claim{
			UID:          claim.UID,
			Name:         claim.Name,
			Created:      claim.CreationTimestamp.Time,
			ProviderID:   claim.Status.ProviderID,
			NeedsMachine: s.needsMachine(claim),
			Leaving:      !claim.DeletionTimestamp.IsZero(),
		})
	}
	for _, machine := range s.Machines {
		state.Machines = append(state.Machines, planner.Machine{
			Name:         machine.Name,
			Created:      machine.CreationTimestamp.Time,
			Claim:        s.claimOf(machine),
			ProviderID:   machine.Spec.ProviderID,
			Leaving:      lifecycle.IsLeaving(machine) || s.IsLost(machine) || s.endingMachines[machine.Name],
			Ending:       s.endingMachines[machine.Name],
			HasNode:      s.mayHavePods(machine),
			Unfit:        s.unfit(machine),
			Expired:      s.expired(machine),
			WasLinked:    lifecycle.HasSpareTime(machine),
			Marked:       lifecycle.IsMarked(machine),
			Hooked:       lifecycle.HoldsInstance(machine),
			MarkSeen:     lifecycle.IsMarked(machine) && !s.Now.Before(lifecycle.LeavingSince(machine, s.Now).Add(s.times().Settle)),
			InstanceGone: s.instanceGone[machine.Name],
		})
	}
	return state
}

// plan computes the plan. While the Cluster is being deleted, replicas are never raised. Nothing is
// planned for a suspended resource.
func (s *Snapshot) plan() {
	state := s.state()
	if s.Suspended {
		s.Plan = planner.Plan{Replicas: state.Replicas}
	} else {
		s.Plan = planner.Decide(state)
	}
	if s.ClusterDeleting {
		s.Plan.Replicas = min(s.Plan.Replicas, state.Replicas)
	}
	s.addReasons()
}

// expired reports whether a Machine without a link has been spare for spareTTLSeconds. A Machine with a Node
// first gets the annotation spare-since, because its age does not show since when it is spare.
func (s *Snapshot) expired(machine *clusterv1.Machine) bool {
	if s.mayHavePods(machine) && !lifecycle.HasSpareTime(machine) {
		return false
	}
	return !s.Now.Before(lo.Latest(lifecycle.SpareSince(machine), s.UpSince).Add(s.Settings.SpareTTL))
}

// isUnregistered reports whether a Machine without a link has a Node that Karpenter has not
// registered, so that no Pod can be on it. Nodes of an adopted resource may join without Karpenter's
// taint: there it is enough that Karpenter has not registered the Node.
func isUnregistered(ctx context.Context, workload client.Reader, machine *clusterv1.Machine, resource *scalable.Resource) (bool, error) {
	if !lifecycle.HasNode(machine) || lifecycle.ClaimUID(machine) != "" {
		return false, nil
	}
	node := &corev1.Node{}
	if err := workload.Get(ctx, types.NamespacedName{Name: machine.Status.NodeRef.Name}, node); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("getting Node %s: %w", machine.Status.NodeRef.Name, err))
	}
	if _, registered := node.Labels[karpv1.NodeRegisteredLabelKey]; !registered && resource != nil && scalable.Adopted(resource) {
		return true, nil
	}
	return lo.ContainsBy(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.MatchTaint(&karpv1.UnregisteredNoExecuteTaint) }), nil
}

// mayHavePods reports whether a Machine has a Node on which Pods may run.
func (s *Snapshot) mayHavePods(machine *clusterv1.Machine) bool {
	return lifecycle.HasNode(machine) && !s.unregistered[machine.Name]
}

// IsLost reports whether a Machine that is not leaving has lost its instance. It never becomes a
// Node, so the plan treats it as leaving.
func (s *Snapshot) IsLost(machine *clusterv1.Machine) bool {
	return !lifecycle.IsLeaving(machine) && s.instanceGone[machine.Name]
}
