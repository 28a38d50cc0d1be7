// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	nodeclaimutils "sigs.k8s.io/karpenter/pkg/utils/nodeclaim"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// deleteLost deletes the claims whose Machine a user or another controller deletes, or whose Node or
// instance no longer exists. Karpenter then drains the Node by its own rules, unless CloudProvider.Get
// returns that its instance does not exist, and calls CloudProvider.Delete. It returns the time until
// the next instance can count as gone; zero if none can by time alone.
func (r *Reconciler) deleteLost(ctx context.Context, snap *decided) (time.Duration, error) {
	var again time.Duration
	var errs []error
	for claim := range snap.settled() {
		reason, left, err := r.lost(ctx, claim, snap)
		if reason != "" {
			r.recorder.Publish(machineLost(claim, reason))
			err = nodeclaims.Delete(ctx, r.clusters.Workload.GetClient(), claim, reason)
		}
		again, errs = requeue.Soonest(again, left), append(errs, err)
	}
	return again, errors.Join(errs...)
}

// lost returns why a registered claim must be deleted: a user or a health check deletes its
// Machine, its instance no longer exists, or its Node was removed by force, which Karpenter has
// not noticed. It is empty if there is no such reason. left is the time until its instance can count as
// gone; zero if that takes an event.
//
// The Machine of a registered claim is the one whose Node core has registered. While it was being
// deleted, the claim may have got a second Machine with another provider ID: core writes that a claim
// is registered without a precondition (karpenter: pkg/controllers/nodeclaim/lifecycle/controller.go).
// Core registers only one Node for a claim, so such a claim must end, too.
func (r *Reconciler) lost(ctx context.Context, claim *karpv1.NodeClaim, snap *decided) (reason string, left time.Duration, err error) {
	if !claim.DeletionTimestamp.IsZero() || !nodeclaims.IsRegistered(claim) {
		return "", 0, nil
	}
	linked := snap.LinkedTo(claim.UID)
	isIts := func(machine *clusterv1.Machine) bool { return lifecycle.HasIDOrNodeOf(machine, claim) }
	if len(linked) > 0 && !slices.ContainsFunc(linked, isIts) {
		reason, err := r.lostFirst(ctx, claim, linked[0])
		return reason, 0, err
	}
	for _, machine := range linked {
		if !isIts(machine) {
			continue
		}
		reason, silentIn, err := r.lostWith(ctx, claim, machine, snap.State.Now)
		if reason != "" || err != nil {
			return reason, 0, err
		}
		left = requeue.Soonest(left, silentIn)
	}
	return "", left, nil
}

// lostWith returns why a registered claim is lost with one of its Machines, and the time until the instance
// can count as gone.
func (r *Reconciler) lostWith(ctx context.Context, claim *karpv1.NodeClaim, machine *clusterv1.Machine, now time.Time) (reason string, left time.Duration, err error) {
	// clusterctl deletes the copy of a Machine that it has moved, and the Node stays.
	if lifecycle.IsMoved(machine) {
		return "", 0, nil
	}
	if !machine.DeletionTimestamp.IsZero() {
		return fmt.Sprintf("Machine %s is being deleted", machine.Name), 0, nil
	}
	node := machine.Status.NodeRef.Name
	if node != "" && claim.Status.NodeName != "" && !lifecycle.HasNodeOf(machine, claim) {
		return fmt.Sprintf("its Node %s is not the one of Machine %s, which is %s", claim.Status.NodeName, machine.Name, node), 0, nil
	}
	if removed, err := r.nodeRemoved(ctx, claim, machine); err != nil {
		return "", 0, err
	} else if removed {
		return fmt.Sprintf("the Node of Machine %s has been removed", machine.Name), 0, nil
	}
	gone, left, err := snapshot.InstanceGone(ctx, r.clusters, machine, now)
	if err != nil || gone == "" {
		return "", left, err
	}
	return fmt.Sprintf("the instance of Machine %s no longer exists: %s", machine.Name, gone), 0, nil
}

// lostFirst returns why a registered claim is lost that has only a second Machine. It is lost if its Node no longer
// exists, either. A claim with its provisional ID first gets that of its Node (package providerid).
func (r *Reconciler) lostFirst(ctx context.Context, claim *karpv1.NodeClaim, second *clusterv1.Machine) (string, error) {
	if _, provisional := planner.ParseProvisionalID(claim.Status.ProviderID); provisional {
		return "", nil
	}
	nodes, err := nodeclaimutils.AllNodesForNodeClaim(ctx, r.clusters.Workload.GetClient(), claim)
	if err != nil || len(nodes) > 0 {
		return "", err
	}
	return fmt.Sprintf("its Machine and its Node no longer exist, and Machine %s is its second one", second.Name), nil
}

// nodeRemoved reports whether the Node of a registered claim was removed: Cluster API reports it, and core
// finds none.
func (r *Reconciler) nodeRemoved(ctx context.Context, claim *karpv1.NodeClaim, machine *clusterv1.Machine) (bool, error) {
	if !snapshot.NodeOf(machine).Removed {
		return false, nil
	}
	nodes, err := nodeclaimutils.AllNodesForNodeClaim(ctx, r.clusters.Workload.GetClient(), claim)
	return err == nil && len(nodes) == 0, err
}

// resourcesOfNode returns the scalable resource of the claim whose Node was deleted. The caches of Cluster
// API and of this operator see that in any order.
func (r *Reconciler) resourcesOfNode(ctx context.Context, object client.Object) []reconcile.Request {
	node, isNode := object.(*corev1.Node)
	if !isNode || node.Spec.ProviderID == "" {
		return nil
	}
	claims := &karpv1.NodeClaimList{}
	if err := r.clusters.Workload.GetClient().List(ctx, claims, client.MatchingFields{clients.NodeClaimProviderIDField: node.Spec.ProviderID}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing NodeClaims", "Node", node.Name)
		return nil
	}
	return lo.FilterMap(claims.Items, func(claim karpv1.NodeClaim, _ int) (reconcile.Request, bool) {
		resource := claim.Annotations[v1alpha1.ScalableResourceAnnotation]
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: resource}}, resource != ""
	})
}
