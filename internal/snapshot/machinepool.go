// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// loadPool reads whether the provider can make Machines and must have seen the replicas,
// and which of the leaving Machines have lost their instance.
func (s *Snapshot) loadPool(ctx context.Context, clusters *operator.Clusters) error {
	if s.Resource == nil || !s.Resource.GetDeletionTimestamp().IsZero() {
		// Nobody makes instances any more: all of them are going, or are gone.
		for name, machine := range s.Machines {
			s.instanceGone[name] = lifecycle.IsLeaving(machine)
		}
		s.scaling = planner.Pool{Unready: true}
		return nil
	}
	infrastructure, err := scalable.InfrastructureOf(ctx, clusters, s.Resource)
	if err != nil {
		return err
	}
	// One that is being deleted replaces nothing, and all of its instances go.
	going := infrastructure != nil && infrastructure.GetDeletionTimestamp() != nil
	ready := infrastructure != nil && !going && scalable.MakesMachines(infrastructure)
	if !ready && len(s.Claims) > 0 {
		s.due = append(s.due, s.Now.Add(s.times().ReadyPoll))
	}
	seen := scalable.ReplicasSetAt(s.Resource).Add(s.times().Settle)
	s.due = append(s.due, seen)
	s.scaling = planner.Pool{Unready: !ready, ReplicasSeen: !s.Now.Before(seen)}
	s.scalingProblem = problemOf(infrastructure)
	s.stall = poolStallOf(s.Resource.API().(*clusterv1.MachinePool), infrastructure)
	return s.findLost(ctx, clusters, going)
}

// poolStallOf returns why nothing works on a MachinePool; nil if something does. Once the
// provider has acted on its infrastructure, nothing shows that it acts no more.
func poolStallOf(pool *clusterv1.MachinePool, infrastructure *unstructured.Unstructured) *Stall {
	name := client.ObjectKeyFromObject(pool)
	switch {
	case pool.Status.ObservedGeneration < pool.Generation:
		return noProgress("Cluster API has not acted on MachinePool %s: check that its controllers run", name)
	case infrastructure == nil:
		return noProgress("the infrastructure object of MachinePool %s does not exist", name)
	case untouched(infrastructure):
		return noProgress("the infrastructure provider has not acted on %s %s of MachinePool %s: check that it runs", infrastructure.GetKind(), infrastructure.GetName(), name)
	}
	return nil
}

// findLost tells which Machines have lost their instance. Going tells whether all instances
// of the pool go.
func (s *Snapshot) findLost(ctx context.Context, clusters *operator.Clusters, going bool) error {
	for name, machine := range s.Machines {
		var err error
		if !lifecycle.IsLeaving(machine) {
			s.instanceGone[name] = neverBoots(ctx, clusters, machine)
		} else {
			s.due = append(s.due, lifecycle.LeavingSince(machine, s.Now).Add(s.times().Settle))
			s.instanceGone[name], err = lostInstance(ctx, clusters, machine, s.Resource)
			s.instanceGone[name] = s.instanceGone[name] || going && !machine.DeletionTimestamp.IsZero()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readInstance returns the infrastructure's object of a Machine; nil if there is none. What
// the cache lacks the API server is asked for: the cache may be behind.
func readInstance(ctx context.Context, clusters *operator.Clusters, machine *clusterv1.Machine) (*unstructured.Unstructured, error) {
	instance, err := reference.Get(ctx, clusters.Management.GetClient(), machine.Spec.InfrastructureRef, clusters.Cluster.Namespace)
	if apierrors.IsNotFound(err) {
		instance, err = reference.Get(ctx, clusters.Management.GetAPIReader(), machine.Spec.InfrastructureRef, machine.Namespace)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the instance of Machine %s/%s: %w", machine.Namespace, machine.Name, err)
	}
	return instance, nil
}

// neverBoots tells whether a Machine without a Node has lost its instance, which was there
// before it. If it has a Node, that goes with the instance, and the claim with the Node.
func neverBoots(ctx context.Context, clusters *operator.Clusters, machine *clusterv1.Machine) bool {
	if lifecycle.HasNode(machine) {
		return false
	}
	instance, err := readInstance(ctx, clusters, machine)
	// Whatever it is that cannot be read, the launch timeout is there.
	return err == nil && instance == nil
}

// lostInstance tells whether the instance of a leaving Machine is gone or, if that was
// deleted, going. Its hook cannot keep what is not there, and for the provider it does not count.
func lostInstance(ctx context.Context, clusters *operator.Clusters, machine *clusterv1.Machine, resource *scalable.Resource) (bool, error) {
	instance, err := readInstance(ctx, clusters, machine)
	if err != nil || instance == nil {
		return err == nil, err
	}
	if machine.DeletionTimestamp.IsZero() {
		return false, nil
	}
	// The list is what the provider has; some go on having an object of what is gone.
	ids := resource.API().(*clusterv1.MachinePool).Spec.ProviderIDList
	// A Machine can have a Node before it learns of its provider ID.
	id := machine.Spec.ProviderID
	return instance.GetDeletionTimestamp() != nil || lifecycle.HasNode(machine) && id != "" && !slices.Contains(ids, id), nil
}

// problemOf returns what the provider says is wrong with a machine pool.
func problemOf(infrastructure *unstructured.Unstructured) string {
	if infrastructure == nil {
		return ": its infrastructure is not there"
	}
	conditions, _, _ := unstructured.NestedSlice(infrastructure.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if condition["type"] == clusterv1.ReadyCondition && condition["status"] == string(metav1.ConditionFalse) {
			return fmt.Sprintf(": %v: %v", condition["reason"], condition["message"])
		}
	}
	return ""
}
