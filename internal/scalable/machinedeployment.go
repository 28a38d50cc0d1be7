// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// machineDeployments is the Kind of MachineDeployments. MachineSets act on their replicas:
// see package snapshot.
type machineDeployments struct{}

// Name returns the name of the kind.
func (machineDeployments) Name() v1alpha1.ScalableResourceKind {
	return v1alpha1.ScalableResourceKindMachineDeployment
}

func (machineDeployments) empty() (client.Object, client.ObjectList) {
	return &clusterv1.MachineDeployment{}, &clusterv1.MachineDeploymentList{}
}

func (machineDeployments) fields(object client.Object) fields {
	deployment := object.(*clusterv1.MachineDeployment)
	return fields{
		replicas: deployment.Spec.Replicas, template: &deployment.Spec.Template,
		machines: deployment.Status.Replicas, ready: deployment.Status.ReadyReplicas,
		paused: lo.FromPtr(deployment.Spec.Paused),
	}
}

func (machineDeployments) setReplicas(object client.Object, replicas int32, _ time.Time) {
	object.(*clusterv1.MachineDeployment).Spec.Replicas = &replicas
}

// Accepts requires a template of single machines.
func (machineDeployments) Accepts(base *unstructured.Unstructured, _ v1alpha1.ScalableResource) error {
	if err := isOfGroup(base, reference.InfrastructureGroup); err != nil {
		return err
	}
	name := fmt.Sprintf("%s %s", base.GetKind(), client.ObjectKeyFromObject(base))
	if makesPools(base.GetKind()) {
		return fmt.Errorf("%s is for MachinePools: name a template of machines, or set spec.scalableResource.kind to MachinePool", name)
	}
	if err := isTemplate(base); err != nil {
		return err
	}
	if !strings.HasSuffix(base.GetKind(), "MachineTemplate") {
		return fmt.Errorf("%s is no template of machines: name a kind that ends in MachineTemplate", name)
	}
	return nil
}

// MadeOf returns the same kind, because templates are copied.
func (machineDeployments) MadeOf(base schema.GroupVersionKind) schema.GroupVersionKind { return base }

// HasMachineSets is true.
func (machineDeployments) HasMachineSets() bool { return true }

// Shares is true, because the names of copies depend only on their content.
func (machineDeployments) Shares() bool { return true }

func (machineDeployments) unusable(context.Context, *clients.Clusters, *Resource) (string, error) {
	return "", nil
}

// controlledByOthers reports whether Cluster API decides which Machines of a MachineDeployment are deleted when replicas
// are lowered: it has Machines in several MachineSets, because a user has changed it. Of an adopted one, another field
// manager can also set the replicas.
func (machineDeployments) controlledByOthers(ctx context.Context, clusters *clients.Clusters, resource *Resource) (bool, error) {
	if !Adopted(resource) {
		why, err := Changed(ctx, clusters, resource)
		return why != "", err
	}
	deployment := resource.API().(*clusterv1.MachineDeployment)
	if contested, err := replicasContested(ctx, clusters, deployment); err != nil || contested {
		return contested, err
	}
	sets, err := MachineSets(ctx, clusters, resource.GetName())
	return rollingOut(sets), err
}

// replicasContested reports whether another field manager sets the replicas of a
// MachineDeployment.
func replicasContested(ctx context.Context, clusters *clients.Clusters, deployment *clusterv1.MachineDeployment) (bool, error) {
	cluster := &clusterv1.Cluster{}
	if err := clusters.Management.GetClient().Get(ctx, clusters.Cluster, cluster); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("getting Cluster %s: %w", clusters.Cluster, err))
	}
	return clients.ReplicasSetBy(deployment, cluster) != nil, nil
}

// rollingOut reports whether Cluster API is replacing the Machines of an adopted resource after a change by its owner.
func rollingOut(sets []clusterv1.MachineSet) bool {
	return lo.CountBy(sets, func(set clusterv1.MachineSet) bool { return HasMachines(&set) }) > 1
}

// MachineSets returns the MachineSets of a MachineDeployment. They are shared with the cache: nobody may change them.
func MachineSets(ctx context.Context, clusters *clients.Clusters, name string) ([]clusterv1.MachineSet, error) {
	sets := &clusterv1.MachineSetList{}
	if err := clusters.Management.GetClient().List(ctx, sets, client.MatchingFields{clients.ResourceField: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the MachineSets of MachineDeployment %s: %w", name, err)
	}
	return sets.Items, nil
}

// IsSetCurrent reports whether the API server has the same MachineSet as the cache, with the same replicas,
// on which it has acted. A MachineSet that is being deleted or does not exist replaces nothing.
func IsSetCurrent(ctx context.Context, clusters *clients.Clusters, key client.ObjectKey) (bool, error) {
	cached, live := &clusterv1.MachineSet{}, &clusterv1.MachineSet{}
	if err := clusters.Management.GetAPIReader().Get(ctx, key, live); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("getting MachineSet %s: %w", key, err)
	}
	if err := clusters.Management.GetClient().Get(ctx, key, cached); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("getting MachineSet %s: %w", key, err))
	}
	same := live.UID == cached.UID && lo.FromPtr(live.Spec.Replicas) == lo.FromPtr(cached.Spec.Replicas)
	return !live.DeletionTimestamp.IsZero() || same && live.Status.ObservedGeneration >= live.Generation, nil
}

// IsObserved reports whether the status of a MachineDeployment is of its current generation.
func IsObserved(deployment *clusterv1.MachineDeployment) bool {
	return deployment.Status.ObservedGeneration >= deployment.Generation
}
