// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// readPool reads whether the provider can create Machines, when the replicas were set,
// and which Machines have lost their instance.
func (s *Snapshot) readPool(ctx context.Context, clusters *clients.Clusters) error {
	state := &s.State
	if s.Resource == nil || !s.Resource.GetDeletionTimestamp().IsZero() {
		// Nothing creates instances: all of them are being deleted or no longer exist.
		for i := range state.Machines {
			state.Machines[i].InstanceGone = state.Machines[i].Leaving
		}
		state.Scaling = planner.Pool{Unready: true, Ends: true}
		if s.Resource != nil {
			s.Ending = len(s.Machines) > 0
			state.Stall = noProgress("%s is being deleted and creates no Machines: wait until its Machines no longer exist", s.Resource)
		}
		return nil
	}
	infrastructure, err := scalable.InfrastructureOf(ctx, clusters, s.Resource)
	if err != nil {
		return err
	}
	// An infrastructure that is being deleted replaces nothing, and all its instances are deleted.
	going := infrastructure != nil && infrastructure.GetDeletionTimestamp() != nil
	ready := infrastructure != nil && !going && scalable.MakesMachines(infrastructure)
	pool := planner.Pool{Unready: !ready, ReplicasSetAt: scalable.ReplicasSetAt(s.Resource)}
	if wait := clusters.SettlesIn(); wait > 0 {
		pool.SettlesAt = state.Now.Add(wait)
	}
	state.Scaling = pool
	state.Problem = cmp.Or(problemOf(infrastructure), state.Problem)
	state.Stall = poolStallOf(s.Resource.API().(*clusterv1.MachinePool), infrastructure)
	return s.setInstances(ctx, clusters, going)
}

// poolStallOf returns why nothing acts on a MachinePool; zero if a controller does. Once the provider
// has acted on the infrastructure object, nothing shows whether it still acts.
func poolStallOf(pool *clusterv1.MachinePool, infrastructure *unstructured.Unstructured) planner.Stall {
	name := client.ObjectKeyFromObject(pool)
	switch {
	case pool.Status.ObservedGeneration < pool.Generation:
		return silence("Cluster API has not acted on MachinePool %s: check that its controllers run", name)
	case infrastructure == nil:
		return noProgress("the infrastructure object of MachinePool %s does not exist", name)
	case untouched(infrastructure):
		return silence("the infrastructure provider has not acted on %s %s of MachinePool %s: check that it runs", infrastructure.GetKind(), infrastructure.GetName(), name)
	}
	return planner.Stall{}
}

// setInstances sets which Machines have lost their instance. going reports whether all instances of
// the pool are being deleted.
func (s *Snapshot) setInstances(ctx context.Context, clusters *clients.Clusters, going bool) error {
	for i := range s.State.Machines {
		read := &s.State.Machines[i]
		machine := s.Machines[read.Name]
		if !read.Leaving {
			read.InstanceGone = neverBoots(ctx, clusters, machine)
			continue
		}
		lost, err := lostInstance(ctx, clusters, machine, s.Resource)
		if err != nil {
			return err
		}
		read.InstanceGone = lost || going && read.Deleting
	}
	return nil
}

// readInstance returns the infrastructure object of a Machine; nil if none exists. If the cache lacks
// the object, it reads from the API server, because the cache may be behind.
func readInstance(ctx context.Context, clusters *clients.Clusters, machine *clusterv1.Machine) (*unstructured.Unstructured, error) {
	instance, err := reference.Shared(ctx, clusters.Management.GetClient(), machine.Spec.InfrastructureRef, clusters.Cluster.Namespace)
	if apierrors.IsNotFound(err) {
		instance, err = reference.Get(ctx, clusters.Management.GetAPIReader(), machine.Spec.InfrastructureRef, machine.Namespace)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting the instance of Machine %s/%s: %w", machine.Namespace, machine.Name, err)
	}
	return instance, nil
}

// neverBoots reports whether a Machine without a Node has lost its instance. The instance exists before
// the Machine. A Machine with a Node does not count: its Node is deleted with the instance, and its claim with the
// Node.
func neverBoots(ctx context.Context, clusters *clients.Clusters, machine *clusterv1.Machine) bool {
	if lifecycle.HasNode(machine) {
		return false
	}
	instance, err := readInstance(ctx, clusters, machine)
	// launchTimeoutSeconds limits the wait for an object that cannot be read.
	return err == nil && instance == nil
}

// lostInstance reports whether the instance of a leaving Machine no longer exists or, if the Machine
// is being deleted, is being deleted. A hook cannot keep such an instance, and the provider does not
// count it.
func lostInstance(ctx context.Context, clusters *clients.Clusters, machine *clusterv1.Machine, resource *scalable.Resource) (bool, error) {
	instance, err := readInstance(ctx, clusters, machine)
	if unlisted := (reference.Unlisted{}); errors.As(err, &unlisted) {
		return false, nil // the operator must assume that its hook keeps it
	}
	if err != nil || instance == nil {
		return err == nil, err
	}
	if machine.DeletionTimestamp.IsZero() {
		return false, nil
	}
	// The list has the instances of the provider. Some providers keep the object of a lost instance.
	ids := resource.API().(*clusterv1.MachinePool).Spec.ProviderIDList
	// A Machine can have a Node before it has its provider ID.
	id := machine.Spec.ProviderID
	return instance.GetDeletionTimestamp() != nil || lifecycle.HasNode(machine) && id != "" && !slices.Contains(ids, id), nil
}

// problemOf returns the problem that the provider reports on a machine pool.
func problemOf(infrastructure *unstructured.Unstructured) string {
	if infrastructure == nil {
		return ": its infrastructure object does not exist"
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
