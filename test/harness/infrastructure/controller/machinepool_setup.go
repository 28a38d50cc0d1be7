// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

func setupMachinePool(mgr ctrl.Manager, opts Options) error {
	fromMachinePool := func(_ context.Context, obj client.Object) []reconcile.Request {
		pool, ok := obj.(*clusterv1.MachinePool)
		if !ok || pool.Spec.Template.Spec.InfrastructureRef.Kind != machinePoolKind {
			return nil
		}
		return requestFor(pool.Namespace, pool.Spec.Template.Spec.InfrastructureRef.Name)
	}
	fromInstance := func(_ context.Context, obj client.Object) []reconcile.Request {
		machine, ok := obj.(*infrav1.SimulatedMachine)
		if !ok {
			return nil
		}
		ref := poolRefOf(machine)
		if ref == nil {
			return nil
		}
		return requestFor(machine.Namespace, ref.Name)
	}
	fromMachine := func(ctx context.Context, obj client.Object) []reconcile.Request {
		machine, ok := obj.(*clusterv1.Machine)
		if !ok || machine.Spec.InfrastructureRef.Kind != "SimulatedMachine" || !labels.IsMachinePoolOwned(machine) {
			return nil
		}
		instance := &infrav1.SimulatedMachine{}
		if err := mgr.GetClient().Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.InfrastructureRef.Name}, instance); err != nil {
			return nil
		}
		return fromInstance(ctx, instance)
	}
	return ctrl.NewControllerManagedBy(mgr).Named("simulatedmachinepool").For(&infrav1.SimulatedMachinePool{}).
		Watches(&clusterv1.MachinePool{}, handler.EnqueueRequestsFromMapFunc(fromMachinePool), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&infrav1.SimulatedMachine{}, handler.EnqueueRequestsFromMapFunc(fromInstance)).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(fromMachine), builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster(mgr, func() client.ObjectList { return &infrav1.SimulatedMachinePoolList{} })), clusterChanges()).
		WithOptions(controllerOptions(opts)).
		Complete(&machinePoolReconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader(), clock: opts.Clock})
}
