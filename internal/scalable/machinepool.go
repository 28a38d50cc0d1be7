// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// machinePools is the Kind of MachinePools. The infrastructure provider acts on their
// replicas: see package snapshot.
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

// setReplicas also records the time, because Machines that are leaving wait from then on.
func (machinePools) setReplicas(object client.Object, replicas int32, now time.Time) {
	pool := object.(*clusterv1.MachinePool)
	pool.Spec.Replicas = &replicas
	metav1.SetMetaDataAnnotation(&pool.ObjectMeta, v1alpha1.ReplicasSetAtAnnotation, timestamp.Format(now))
}

// HasMachineSets is false.
func (machinePools) HasMachineSets() bool { return false }

// Shares is false, because Cluster API makes the MachinePool the controller of the objects
// that it refers to (core/reconcilers/machinepool, reconcileExternal).
func (machinePools) Shares() bool { return false }

// indiscriminate are machine pools whose providers ignore the annotation
// cluster.x-k8s.io/delete-machine (test/harness/infrastructure/MACHINEPOOLS.md).
var indiscriminate = []string{
	"AWSMachinePool", "AWSManagedMachinePool", "AzureManagedMachinePool", "GCPManagedMachinePool",
	"OCIMachinePool", "OCIManagedMachinePool", "OCIVirtualMachinePool",
}

// Accepts requires a template of a machine pool or, because not all providers have such
// templates, a machine pool that no MachinePool owns. Its provider must delete the Machines
// that are marked for deletion.
func (machinePools) Accepts(base *unstructured.Unstructured, settings v1alpha1.ScalableResource) error {
	if err := isOfGroup(base, reference.InfrastructureGroup); err != nil {
		return err
	}
	name := fmt.Sprintf("%s %s", base.GetKind(), client.ObjectKeyFromObject(base))
	kind := strings.TrimSuffix(base.GetKind(), clusterv1.TemplateSuffix)
	owner := metav1.GetControllerOf(base)
	switch {
	case !makesPools(base.GetKind()):
		return fmt.Errorf("%s is not for MachinePools: name a machine pool or a template of one, or set spec.scalableResource.kind to MachineDeployment", name)
	case IsTemplateKind(base) && isTemplate(base) != nil:
		return isTemplate(base)
	case !IsTemplateKind(base) && owner != nil:
		return fmt.Errorf("%s is in use by %s %s: create another one without an owner for this template", name, owner.Kind, owner.Name)
	case slices.Contains(indiscriminate, kind) && !settings.AllowNodeLoss:
		return fmt.Errorf("%s: the infrastructure provider of %ss deletes any machine when replicas are lowered, even one that is in use: use MachineDeployments, or set spec.scalableResource.allowNodeLoss", name, kind)
	}
	return nil
}

// MadeOf returns the kind of the generated objects: that of the template without "Template".
func (machinePools) MadeOf(base schema.GroupVersionKind) schema.GroupVersionKind {
	return base.GroupVersion().WithKind(strings.TrimSuffix(base.Kind, clusterv1.TemplateSuffix))
}

// controlledByOthers reports whether another controller sets the replicas of a MachinePool,
// by the annotation cluster.x-k8s.io/replicas-managed-by.
func (machinePools) controlledByOthers(_ context.Context, _ *clients.Clusters, resource *Resource) (bool, error) {
	return annotations.ReplicasManagedByExternalAutoscaler(resource), nil
}

// unusable returns why a MachinePool cannot serve claims. A single instance can only be
// deleted through its Machine, and Machines exist if the provider reports the kind of its
// instances (Cluster API's book: providers/contracts/infra-machinepool.md).
func (machinePools) unusable(ctx context.Context, clusters *clients.Clusters, resource *Resource) (string, error) {
	if annotations.ReplicasManagedByExternalAutoscaler(resource) {
		return fmt.Sprintf("another controller sets the replicas of %s: turn that off, and remove the annotation %s", resource, clusterv1.ReplicasManagedByAnnotation), nil
	}
	infrastructure, err := InfrastructureOf(ctx, clusters, resource)
	if err != nil || infrastructure == nil || MakesMachines(infrastructure) || !IsProvisioned(infrastructure) {
		return "", err
	}
	return fmt.Sprintf("%s %s/%s has no MachinePool Machines (status.infrastructureMachineKind is not set), so single machines cannot be deleted: turn them on in the infrastructure provider, or set spec.scalableResource.kind to MachineDeployment",
		infrastructure.GetKind(), infrastructure.GetNamespace(), infrastructure.GetName()), nil
}
