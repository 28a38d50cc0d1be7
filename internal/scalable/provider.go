// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/link"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// hold keeps the instance of a deleted Machine until replicas do not count it: the
// provider would replace it, and remove another one when replicas are lowered.
func (machinePools) hold(machine *clusterv1.Machine) {
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, v1alpha1.TerminateHookAnnotation, "")
}

// controlledByOthers tells whether somebody else sets the replicas of a MachinePool, as
// cluster.x-k8s.io/replicas-managed-by says.
func (machinePools) controlledByOthers(_ context.Context, _ *operator.Clusters, resource *Resource) (bool, error) {
	return annotations.ReplicasManagedByExternalAutoscaler(resource), nil
}

// unusable returns why a MachinePool cannot serve claims. Only with Machines can a
// single instance be removed, and they are there if the provider says of which kind its
// instances are (Cluster API's book: providers/contracts/infra-machinepool.md).
func (machinePools) unusable(ctx context.Context, clusters *operator.Clusters, resource *Resource) (string, error) {
	if annotations.ReplicasManagedByExternalAutoscaler(resource) {
		return fmt.Sprintf("the replicas of %s are set by somebody else: remove what does that, and the annotation %s", resource, clusterv1.ReplicasManagedByAnnotation), nil
	}
	infrastructure, err := infrastructureOf(ctx, clusters, resource)
	if err != nil || infrastructure == nil || makesMachines(infrastructure) || !provisioned(infrastructure) {
		return "", err
	}
	return fmt.Sprintf("%s %s/%s has no MachinePool Machines (status.infrastructureMachineKind), so that no single one could be removed: turn them on in the infrastructure provider, or set spec.scalableResource.kind to MachineDeployment",
		infrastructure.GetKind(), infrastructure.GetNamespace(), infrastructure.GetName()), nil
}

// infrastructureOf returns the infrastructure's machine pool, from the cache; nil if
// there is none.
func infrastructureOf(ctx context.Context, clusters *operator.Clusters, resource *Resource) (*unstructured.Unstructured, error) {
	pool := resource.API().(*clusterv1.MachinePool)
	infrastructure, err := read(ctx, clusters, pool.Spec.Template.Spec.InfrastructureRef)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", resource, err)
	}
	return infrastructure, nil
}

func makesMachines(infrastructure *unstructured.Unstructured) bool {
	kind, _, err := unstructured.NestedString(infrastructure.Object, "status", "infrastructureMachineKind")
	return err == nil && kind != ""
}

// provisioned tells whether the provider has made a machine pool: by the contract, or
// by what Cluster API v1.14 really looks at (controllers/external/util.go, IsReady).
func provisioned(infrastructure *unstructured.Unstructured) bool {
	for _, field := range [][]string{{"status", "initialization", "provisioned"}, {"status", "ready"}} {
		if is, _, err := unstructured.NestedBool(infrastructure.Object, field...); err == nil && is {
			return true
		}
	}
	return false
}

// observe tells whether the provider can make Machines and must have seen the replicas,
// and which of the leaving Machines have lost their instance.
func (machinePools) observe(ctx context.Context, clusters *operator.Clusters, snap *Snapshot) error {
	if snap.Resource == nil || !snap.Resource.GetDeletionTimestamp().IsZero() {
		// Nobody makes instances any more: all of them are going, or are gone.
		for name, machine := range snap.Machines {
			snap.instanceGone[name] = IsLeaving(machine)
		}
		snap.scaling = link.Pool{Unready: true}
		return nil
	}
	infrastructure, err := infrastructureOf(ctx, clusters, snap.Resource)
	if err != nil {
		return err
	}
	// One that is being deleted replaces nothing, and all of its instances go.
	going := infrastructure != nil && infrastructure.GetDeletionTimestamp() != nil
	ready := infrastructure != nil && !going && makesMachines(infrastructure)
	if !ready && len(snap.Claims) > 0 {
		snap.due = append(snap.due, snap.Now.Add(snap.times().ReadyPoll))
	}
	seen := replicasSince(snap.Resource).Add(snap.times().Settle)
	snap.due = append(snap.due, seen)
	snap.scaling = link.Pool{Unready: !ready, ReplicasSeen: !snap.Now.Before(seen)}
	snap.scalingProblem = problemOf(infrastructure)
	snap.stall = poolStallOf(snap.Resource.API().(*clusterv1.MachinePool), infrastructure)
	return snap.findLost(ctx, clusters, going)
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
		if !IsLeaving(machine) {
			s.instanceGone[name] = neverBoots(ctx, clusters, machine)
		} else {
			s.due = append(s.due, LeavingSince(machine, s.Now).Add(s.times().Settle))
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
	instance, err := read(ctx, clusters, machine.Spec.InfrastructureRef)
	if apierrors.IsNotFound(err) {
		instance, err = external.GetObjectFromContractVersionedRef(ctx, clusters.Management.GetAPIReader(), machine.Spec.InfrastructureRef, machine.Namespace)
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
	if HasNode(machine) {
		return false
	}
	instance, err := readInstance(ctx, clusters, machine)
	// Whatever it is that cannot be read, the launch timeout is there.
	return err == nil && instance == nil
}

// lostInstance tells whether the instance of a leaving Machine is gone or, if that was
// deleted, going. Its hook cannot keep what is not there, and for the provider it does not count.
func lostInstance(ctx context.Context, clusters *operator.Clusters, machine *clusterv1.Machine, resource *Resource) (bool, error) {
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
	return instance.GetDeletionTimestamp() != nil || HasNode(machine) && id != "" && !slices.Contains(ids, id), nil
}

// replicasSince returns when replicas were last set.
func replicasSince(resource *Resource) time.Time {
	since, err := time.Parse(time.RFC3339, resource.GetAnnotations()[v1alpha1.ReplicasSetAtAnnotation])
	if err != nil {
		return resource.GetCreationTimestamp().Time // they were never set, or somebody has edited the time
	}
	return since
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

func (machinePools) passOn(context.Context, *operator.Clusters, *Snapshot, int32) error { return nil }
