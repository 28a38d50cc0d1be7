// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"
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

const (
	// settle is after what time an infrastructure provider must have seen what was
	// written: nothing tells what it has seen. It is much for a watch.
	settle = 10 * time.Second
	// readyPoll is after what time an infrastructure is looked at again from which no
	// Machines can be had yet. Its MachinePool tells that it is ready, and may be seen
	// before.
	readyPoll = 5 * time.Second
)

// hold keeps the instance of a deleted Machine until replicas do not count it: the
// provider would replace it, and remove another one when replicas are lowered.
func (machinePools) hold(machine *clusterv1.Machine) {
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, v1alpha1.TerminateHookAnnotation, "")
}

// handsOff tells whether somebody else sets the replicas of a MachinePool, as
// cluster.x-k8s.io/replicas-managed-by says.
func (machinePools) handsOff(_ context.Context, _ *operator.Clusters, resource *Resource) (bool, error) {
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
func (machinePools) observe(ctx context.Context, clusters *operator.Clusters, observed *Observed) error {
	if observed.Resource == nil || !observed.Resource.GetDeletionTimestamp().IsZero() {
		// Nobody makes instances any more: all of them are going, or are gone.
		for name, machine := range observed.Machines {
			observed.gone[name] = Leaving(machine)
		}
		observed.scaling = link.Pool{Unready: true}
		return nil
	}
	infrastructure, err := infrastructureOf(ctx, clusters, observed.Resource)
	if err != nil {
		return err
	}
	// One that is being deleted replaces nothing, and all of its instances go.
	going := infrastructure != nil && infrastructure.GetDeletionTimestamp() != nil
	ready := infrastructure != nil && !going && makesMachines(infrastructure)
	if !ready && len(observed.Claims) > 0 {
		observed.due = append(observed.due, observed.Now.Add(readyPoll))
	}
	seen := replicasSince(observed.Resource).Add(settle)
	observed.due = append(observed.due, seen)
	settled, err := hasSettled(ctx, clusters, observed, seen)
	if err != nil {
		return err
	}
	observed.scaling = link.Pool{Unready: !ready, Settled: settled}
	observed.scalingProblem = problemOf(infrastructure)
	return observeInstances(ctx, clusters, observed, going)
}

// observeInstances tells which Machines have lost their instance, or are losing it with the
// infrastructure that goes.
func observeInstances(ctx context.Context, clusters *operator.Clusters, observed *Observed, going bool) error {
	var err error
	for _, machine := range observed.Machines {
		if !Leaving(machine) {
			if observed.gone[machine.Name], err = neverBoots(ctx, clusters, machine); err != nil {
				return err
			}
			continue
		}
		observed.due = append(observed.due, LeavingSince(machine, observed.Now).Add(settle))
		lost, err := lostInstance(ctx, clusters, machine, observed.Resource)
		if err != nil {
			return err
		}
		observed.gone[machine.Name] = lost || going && !machine.DeletionTimestamp.IsZero()
	}
	return nil
}

// neverBoots tells whether a Machine without a Node has lost its instance, which was there
// before it. The API server says so, too, for the cache may be behind with instances. If it
// has a Node, that goes with the instance, and the claim with the Node.
func neverBoots(ctx context.Context, clusters *operator.Clusters, machine *clusterv1.Machine) (bool, error) {
	if Used(machine) {
		return false, nil
	}
	_, err := read(ctx, clusters, machine.Spec.InfrastructureRef)
	if apierrors.IsNotFound(err) {
		_, err = external.GetObjectFromContractVersionedRef(ctx, clusters.Management.GetAPIReader(), machine.Spec.InfrastructureRef, machine.Namespace)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	// Whatever it is that cannot be read, the launch timeout is there.
	return false, nil
}

// lostInstance tells whether the instance of a leaving Machine is gone or, if that was
// deleted, going. Its hook cannot keep what is not there, and for the provider it does not count.
func lostInstance(ctx context.Context, clusters *operator.Clusters, machine *clusterv1.Machine, resource *Resource) (bool, error) {
	instance, err := read(ctx, clusters, machine.Spec.InfrastructureRef)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("the instance of Machine %s/%s: %w", machine.Namespace, machine.Name, err)
	}
	if machine.DeletionTimestamp.IsZero() {
		return false, nil
	}
	// The list is what the provider has; some go on having an object of what is gone.
	ids := resource.API().(*clusterv1.MachinePool).Spec.ProviderIDList
	// A Machine can have a Node before it learns of its provider ID.
	id := machine.Spec.ProviderID
	return instance.GetDeletionTimestamp() != nil || Used(machine) && id != "" && !slices.Contains(ids, id), nil
}

// hasSettled tells whether the provider must have seen the replicas as they are. With a
// chosen Machine the API server must have the same ones, set at the same time: the cache
// can lack what this operator has set a moment ago, and the Machine would go without its wait.
func hasSettled(ctx context.Context, clusters *operator.Clusters, observed *Observed, seen time.Time) (bool, error) {
	if observed.Now.Before(seen) || !lo.SomeBy(lo.Values(observed.Machines), Chosen) {
		return !observed.Now.Before(seen), nil
	}
	pool, resource := &clusterv1.MachinePool{}, observed.Resource
	if err := clusters.Management.GetAPIReader().Get(ctx, resource.Key(), pool); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	current := resourceOf(machinePools{}, pool)
	return current.GetUID() == resource.GetUID() && current.Replicas() == resource.Replicas() && replicasSince(current).Equal(replicasSince(resource)), nil
}

// replicasSince returns when replicas were last set.
func replicasSince(resource *Resource) time.Time {
	since, err := time.Parse(time.RFC3339, resource.GetAnnotations()[v1alpha1.ReplicasSinceAnnotation])
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

func (machinePools) passOn(context.Context, *operator.Clusters, *Observed, int32) error { return nil }
