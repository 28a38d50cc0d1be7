// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// machineDeployments is the Kind of MachineDeployments. What acts on their replicas are
// MachineSets, see machineset.go.
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

// Accepts demands a template of single machines.
func (machineDeployments) Accepts(base *unstructured.Unstructured, _ v1alpha1.ScalableResource) error {
	switch err := IsTemplate(base); {
	case err != nil:
		return err
	case makesPools(base.GetKind()):
		return fmt.Errorf("%s %s is for MachinePools: name a template of machines, or set spec.scalableResource.kind to MachinePool", base.GetKind(), client.ObjectKeyFromObject(base))
	}
	return nil
}

// MadeOf returns the same kind: a template is copied.
func (machineDeployments) MadeOf(base schema.GroupVersionKind) schema.GroupVersionKind { return base }

// Shares is true: copies are named by their content.
func (machineDeployments) Shares() bool { return true }

func (machineDeployments) unusable(context.Context, *operator.Clusters, *Resource) (string, error) {
	return "", nil
}

// controlledByOthers reports whether a MachineDeployment was adopted, and is rolling out or has its
// replicas from someone else.
func (machineDeployments) controlledByOthers(ctx context.Context, clusters *operator.Clusters, resource *Resource) (bool, error) {
	if !Adopted(resource) {
		return false, nil
	}
	deployment := resource.API().(*clusterv1.MachineDeployment)
	if contested, err := replicasContested(ctx, clusters, deployment); err != nil || contested {
		return contested, err
	}
	sets, err := MachineSets(ctx, clusters, resource.GetName())
	return rollingOut(sets), err
}

// replicasContested reports whether someone else sets the replicas of a MachineDeployment.
func replicasContested(ctx context.Context, clusters *operator.Clusters, deployment *clusterv1.MachineDeployment) (bool, error) {
	cluster := &clusterv1.Cluster{}
	if err := clusters.Management.GetClient().Get(ctx, clusters.Cluster, cluster); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("getting Cluster %s: %w", clusters.Cluster, err))
	}
	return operator.ReplicasSetBy(deployment, cluster) != nil, nil
}

// rollingOut tells whether Cluster API is replacing the Machines of an adopted
// resource, which its owner has changed: then it has Machines in several MachineSets,
// and which of them goes when replicas are lowered is not for us to say. Of what is
// generated, each MachineSet gets its own replicas, see link.MachineSets.
func rollingOut(sets []clusterv1.MachineSet) bool {
	return lo.CountBy(sets, func(set clusterv1.MachineSet) bool {
		return lo.FromPtr(set.Spec.Replicas) > 0 || lo.FromPtr(set.Status.Replicas) > 0
	}) > 1
}

func MachineSets(ctx context.Context, clusters *operator.Clusters, name string) ([]clusterv1.MachineSet, error) {
	sets := &clusterv1.MachineSetList{}
	if err := clusters.Management.GetClient().List(ctx, sets, client.MatchingFields{operator.ResourceField: name}); err != nil {
		return nil, fmt.Errorf("listing the MachineSets of MachineDeployment %s: %w", name, err)
	}
	return sets.Items, nil
}

func IsObserved(deployment *clusterv1.MachineDeployment) bool {
	return deployment.Status.ObservedGeneration >= deployment.Generation
}
