// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/controlplane/v1alpha1"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// Options change how the provider works. The zero value is for a workload cluster with kwok.
type Options struct {
	// NodeReady makes the provider set Nodes to Ready and keep them so, and set them to Unknown when their instance is
	// deleted: for a workload API server without kwok and kube-controller-manager, such as that of a test process.
	NodeReady bool

	// WorkloadCA are the authorities of the workload cluster's API server, PEM encoded. Machines with kubeadm's bootstrap data
	// check them before they join. Nil means that machines do not read their bootstrap data.
	WorkloadCA []byte

	// Concurrency is how many objects of a kind are reconciled at a time. Zero means 1.
	Concurrency int

	// Clock is the source of the time. Nil means the real clock.
	Clock clock.PassiveClock
}

// AddToScheme adds all kinds that the provider reads and writes in the management cluster.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(infrav1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme), bootstrapv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme))
}

// SetupWithManager adds the provider's controllers to a manager of the management cluster, whose scheme must have the
// kinds of AddToScheme. Nodes and their leases are read and written with the workload client, whose scheme must have
// those of Kubernetes; it need not be cached.
func SetupWithManager(mgr ctrl.Manager, workload client.Client, opts Options) error {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return errors.Join(
		setupCluster(mgr, opts),
		setupControlPlane(mgr, opts),
		setupConfig(mgr, opts),
		setupMachineTemplate(mgr, opts),
		setupMachine(mgr, workload, opts),
		setupMachinePool(mgr, opts),
		setupRemediation(mgr, workload, opts),
	)
}

func setupCluster(mgr ctrl.Manager, opts Options) error {
	toCluster := func(_ context.Context, obj client.Object) []reconcile.Request {
		cluster, ok := obj.(*clusterv1.Cluster)
		if !ok || cluster.Spec.InfrastructureRef.Kind != "SimulatedCluster" {
			return nil
		}
		return requestFor(cluster.Namespace, cluster.Spec.InfrastructureRef.Name)
	}
	return ctrl.NewControllerManagedBy(mgr).Named("simulatedcluster").For(&infrav1.SimulatedCluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(toCluster), clusterChanges()).
		WithOptions(controllerOptions(opts)).
		Complete(&clusterReconciler{Client: mgr.GetClient(), clock: opts.Clock})
}

func setupControlPlane(mgr ctrl.Manager, opts Options) error {
	toControlPlane := func(_ context.Context, obj client.Object) []reconcile.Request {
		cluster, ok := obj.(*clusterv1.Cluster)
		if !ok || cluster.Spec.ControlPlaneRef.Kind != "SimulatedControlPlane" {
			return nil
		}
		return requestFor(cluster.Namespace, cluster.Spec.ControlPlaneRef.Name)
	}
	return ctrl.NewControllerManagedBy(mgr).Named("simulatedcontrolplane").For(&controlplanev1.SimulatedControlPlane{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(toControlPlane), clusterChanges()).
		WithOptions(controllerOptions(opts)).
		Complete(&controlPlaneReconciler{Client: mgr.GetClient(), clock: opts.Clock})
}

func setupConfig(mgr ctrl.Manager, opts Options) error {
	return ctrl.NewControllerManagedBy(mgr).Named("simulatedconfig").For(&bootstrapv1.SimulatedConfig{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster(mgr, func() client.ObjectList { return &bootstrapv1.SimulatedConfigList{} })), clusterChanges()).
		WithOptions(controllerOptions(opts)).
		Complete(&configReconciler{Client: mgr.GetClient(), clock: opts.Clock})
}

func setupMachineTemplate(mgr ctrl.Manager, opts Options) error {
	return ctrl.NewControllerManagedBy(mgr).Named("simulatedmachinetemplate").For(&infrav1.SimulatedMachineTemplate{}).
		WithOptions(controllerOptions(opts)).
		Complete(&machineTemplateReconciler{Client: mgr.GetClient()})
}

func setupMachine(mgr ctrl.Manager, workload client.Client, opts Options) error {
	fromMachine := func(_ context.Context, obj client.Object) []reconcile.Request {
		machine, ok := obj.(*clusterv1.Machine)
		if !ok || machine.Spec.InfrastructureRef.Kind != "SimulatedMachine" {
			return nil
		}
		return requestFor(machine.Namespace, machine.Spec.InfrastructureRef.Name)
	}
	return ctrl.NewControllerManagedBy(mgr).Named("simulatedmachine").For(&infrav1.SimulatedMachine{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(fromMachine), machineChanges()).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster(mgr, func() client.ObjectList { return &infrav1.SimulatedMachineList{} })), clusterChanges()).
		WithOptions(controllerOptions(opts)).
		Complete(&machineReconciler{
			Client:     mgr.GetClient(),
			live:       mgr.GetAPIReader(),
			workload:   workload,
			workloadCA: opts.WorkloadCA,
			clock:      opts.Clock,
			nodeReady:  opts.NodeReady,
		})
}

func setupRemediation(mgr ctrl.Manager, workload client.Client, opts Options) error {
	return ctrl.NewControllerManagedBy(mgr).Named("simulatedremediation").For(&infrav1.SimulatedRemediation{}).
		WithOptions(controllerOptions(opts)).
		Complete(&remediationReconciler{Client: mgr.GetClient(), workload: workload, clock: opts.Clock})
}

// ofCluster maps a Cluster to all objects of a kind that are labelled with it.
func ofCluster(mgr ctrl.Manager, newList func() client.ObjectList) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		list := newList()
		if err := mgr.GetClient().List(ctx, list, client.InNamespace(obj.GetNamespace()),
			client.MatchingLabels{clusterv1.ClusterNameLabel: obj.GetName()}); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the objects of a Cluster", "Cluster", obj.GetName())
			return nil
		}
		var requests []reconcile.Request
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			if obj, ok := item.(client.Object); ok {
				requests = append(requests, requestFor(obj.GetNamespace(), obj.GetName())...)
			}
			return nil
		})
		return requests
	}
}

// clusterChanges selects the only changes of a Cluster that matter to a provider, because a Cluster's status changes
// with each of its machines.
func clusterChanges() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*clusterv1.Cluster)
		if !ok {
			return false
		}
		after, ok := e.ObjectNew.(*clusterv1.Cluster)
		return ok && (!ptr.Equal(before.Spec.Paused, after.Spec.Paused) ||
			!ptr.Equal(before.Status.Initialization.InfrastructureProvisioned, after.Status.Initialization.InfrastructureProvisioned))
	}})
}

// machineChanges selects the only change of a Machine that an instance waits for.
func machineChanges() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*clusterv1.Machine)
		if !ok {
			return false
		}
		after, ok := e.ObjectNew.(*clusterv1.Machine)
		return ok && !ptr.Equal(before.Spec.Bootstrap.DataSecretName, after.Spec.Bootstrap.DataSecretName)
	}})
}

func controllerOptions(opts Options) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: opts.Concurrency,
		// The restart of a workload API server must not cause a wait of minutes.
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](10*time.Millisecond, 10*time.Second),
		// A test process can run several providers in sequence.
		SkipNameValidation: ptr.To(true),
	}
}

func requestFor(namespace, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}
