// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"slices"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

// OwnReferencesChanged passes events after which the MachineDeployments and MachinePools of a Cluster that
// the operator did not generate refer to other templates or Secrets. That decides what templates may
// refer to.
func OwnReferencesChanged(cluster types.NamespacedName) predicate.Predicate {
	of := func(object client.Object) []string { return ownReferences(object, cluster) }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return len(of(e.Object)) > 0 },
		UpdateFunc: func(e event.UpdateEvent) bool { return !slices.Equal(of(e.ObjectOld), of(e.ObjectNew)) },
		DeleteFunc: func(e event.DeleteEvent) bool { return len(of(e.Object)) > 0 },
	}
}

// ownReferences returns what a MachineDeployment or MachinePool of the Cluster refers to; nil if the operator
// generated it.
func ownReferences(object client.Object, cluster types.NamespacedName) []string {
	switch object.(type) {
	case *clusterv1.MachineDeployment, *clusterv1.MachinePool:
	default:
		return nil
	}
	resource := tenancy.Resource{Object: object, Machine: scalable.New(object).MachineTemplate().Spec}
	if !resource.IsOwn(cluster) {
		return nil
	}
	references := lo.Map(resource.References(), func(t tenancy.Template, _ int) string { return t.Kind.String() + "/" + t.Name })
	return append(references, lo.FromPtr(resource.Machine.Bootstrap.DataSecretName))
}
