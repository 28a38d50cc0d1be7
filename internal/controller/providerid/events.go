// SPDX-License-Identifier: Apache-2.0

package providerid

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ofClaim enqueues a claim that core has launched, or whose ID something has written, and the claim
// that could not have a provider ID as long as another claim had it.
func (r *Reconciler) ofClaim() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { q.Add(request(e.Object.GetName())) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, isClaim := e.ObjectOld.(*karpv1.NodeClaim)
			after, isStill := e.ObjectNew.(*karpv1.NodeClaim)
			if !isClaim || !isStill {
				return
			}
			if before.Status.ProviderID != after.Status.ProviderID {
				r.enqueueWith(ctx, before.Status.ProviderID, q)
			}
			if claimChanged(before, after) {
				q.Add(request(after.Name))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if claim, isClaim := e.Object.(*karpv1.NodeClaim); isClaim {
				r.enqueueWith(ctx, claim.Status.ProviderID, q)
			}
		},
	}
}

// enqueueWith enqueues the claims whose Machine has a provider ID.
func (r *Reconciler) enqueueWith(ctx context.Context, providerID string, q queue) {
	if providerID == "" {
		return
	}
	machines := &clusterv1.MachineList{}
	if err := r.clusters.Management.GetClient().List(ctx, machines, client.MatchingFields{clients.MachineProviderIDField: providerID}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing Machines", "provider-id", providerID)
		return
	}
	for i := range machines.Items {
		for _, request := range ofMachine(ctx, &machines.Items[i]) {
			q.Add(request)
		}
	}
}

// ofMachine returns the claim that a Machine is linked to.
func ofMachine(_ context.Context, object client.Object) []reconcile.Request {
	machine, isMachine := object.(*clusterv1.Machine)
	if !isMachine || lifecycle.ClaimUID(machine) == "" || lifecycle.ClaimName(machine) == "" {
		return nil
	}
	return []reconcile.Request{request(lifecycle.ClaimName(machine))}
}

// claimChanged reports whether an update of a claim can change whether it gets an ID: core has launched
// it, or something has written another ID.
func claimChanged(before, after *karpv1.NodeClaim) bool {
	return before.Status.ProviderID != after.Status.ProviderID || nodeclaims.IsLaunched(before) != nodeclaims.IsLaunched(after)
}

// otherMachine reports whether an update of a Machine can change which claim it serves, or its ID.
func otherMachine(before, after *clusterv1.Machine) bool {
	return before.Spec.ProviderID != after.Spec.ProviderID ||
		lifecycle.ClaimUID(before) != lifecycle.ClaimUID(after) || lifecycle.IsLeaving(before) != lifecycle.IsLeaving(after)
}

// machineChanged passes the updates for which otherMachine is true.
func machineChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isMachine := e.ObjectOld.(*clusterv1.Machine)
		after, isStill := e.ObjectNew.(*clusterv1.Machine)
		return isMachine && isStill && otherMachine(before, after)
	}}
}

func request(claim string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: claim}}
}
