// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"context"

	"sigs.k8s.io/cluster-api/util/annotations"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// machinePools is the Kind of MachinePools. What acts on their replicas is the
// infrastructure provider, see provider.go.
type machinePools struct{}

// Name returns the name of the kind.
func (machinePools) Name() v1alpha1.ScalableResourceKind {
	return v1alpha1.ScalableResourceKindMachinePool
}

func (machinePools) empty() (client.Object, client.ObjectList) {
	return &clusterv1.MachinePool{}, &clusterv1.MachinePoolList{}
}

func (machinePools) fields(object client.Object) fields {
	pool := object.(*clusterv1.MachinePool)
	return fields{
		replicas: pool.Spec.Replicas, template: &pool.Spec.Template,
		machines: pool.Status.Replicas, ready: pool.Status.ReadyReplicas,
	}
}

// setReplicas notes when that was, for the waits of a Machine that leaves.
func (machinePools) setReplicas(object client.Object, replicas int32, now time.Time) {
	pool := object.(*clusterv1.MachinePool)
	pool.Spec.Replicas = &replicas
	metav1.SetMetaDataAnnotation(&pool.ObjectMeta, v1alpha1.ReplicasSetAtAnnotation, timestamp.Format(now))
}

// Shares is false: Cluster API makes the MachinePool the controller of what it refers to
// (core/reconcilers/machinepool, reconcileExternal).
func (machinePools) Shares() bool { return false }

// indiscriminate are machine pools whose providers do not look at the annotation
// cluster.x-k8s.io/delete-machine (test/infrastructure/MACHINEPOOLS.md).
var indiscriminate = []schema.GroupKind{
	{Group: "infrastructure.cluster.x-k8s.io", Kind: "AWSMachinePool"},
	{Group: "infrastructure.cluster.x-k8s.io", Kind: "AWSManagedMachinePool"},
	{Group: "infrastructure.cluster.x-k8s.io", Kind: "AzureManagedMachinePool"},
	{Group: "infrastructure.cluster.x-k8s.io", Kind: "OCIMachinePool"},
}

// Accepts demands a template of a machine pool or, as not all providers have such
// templates, a machine pool that no MachinePool owns; and that its provider removes the
// Machines that it is told to.
func (machinePools) Accepts(base *unstructured.Unstructured, settings v1alpha1.ScalableResource) error {
	name := fmt.Sprintf("%s %s", base.GetKind(), client.ObjectKeyFromObject(base))
	kind := base.GroupVersionKind().GroupKind()
	kind.Kind = strings.TrimSuffix(kind.Kind, clusterv1.TemplateSuffix)
	owner := metav1.GetControllerOf(base)
	switch {
	case !makesPools(base.GetKind()):
		return fmt.Errorf("%s is not for MachinePools: name a machine pool or a template of one, or set spec.scalableResource.kind to MachineDeployment", name)
	case IsTemplateKind(base) && IsTemplate(base) != nil:
		return IsTemplate(base)
	case !IsTemplateKind(base) && owner != nil:
		return fmt.Errorf("%s is in use by %s %s: make one of its own for this template, which nothing owns", name, owner.Kind, owner.Name)
	case slices.Contains(indiscriminate, kind) && !settings.AllowNodeLoss:
		return fmt.Errorf("%s: the infrastructure provider of %ss removes any machine when replicas are lowered, also one that is in use: use MachineDeployments, or set spec.scalableResource.allowNodeLoss", name, kind.Kind)
	}
	return nil
}

// makesPools tells whether a kind is a machine pool or a template of one: all of them
// are named so (Cluster API's book: providers/contracts/infra-machinepool.md).
func makesPools(kind string) bool { return strings.Contains(kind, "MachinePool") }

func IsTemplateKind(object *unstructured.Unstructured) bool {
	return strings.HasSuffix(object.GetKind(), clusterv1.TemplateSuffix)
}

// IsTemplate returns an error if an object is no template.
func IsTemplate(object *unstructured.Unstructured) error {
	if _, is, err := unstructured.NestedMap(object.Object, "spec", "template"); err != nil || !is {
		return fmt.Errorf("%s %s is no template, for it has no spec.template: name a kind that ends in Template", object.GetKind(), client.ObjectKeyFromObject(object))
	}
	return nil
}

// MadeOf returns the kind of the objects: a template becomes what it is a template of.
func (machinePools) MadeOf(base schema.GroupVersionKind) schema.GroupVersionKind {
	return base.GroupVersion().WithKind(strings.TrimSuffix(base.Kind, clusterv1.TemplateSuffix))
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
	infrastructure, err := InfrastructureOf(ctx, clusters, resource)
	if err != nil || infrastructure == nil || MakesMachines(infrastructure) || !IsProvisioned(infrastructure) {
		return "", err
	}
	return fmt.Sprintf("%s %s/%s has no MachinePool Machines (status.infrastructureMachineKind), so that no single one could be removed: turn them on in the infrastructure provider, or set spec.scalableResource.kind to MachineDeployment",
		infrastructure.GetKind(), infrastructure.GetNamespace(), infrastructure.GetName()), nil
}
