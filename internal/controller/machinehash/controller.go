// SPDX-License-Identifier: Apache-2.0

// Package machinehash renews the hashes of NodeClaims that cannot be compared with present ones: another
// release of the operator has computed them in another way or not at all, or the templates
// have another API version now. Such claims get present hashes instead of drifting.
package machinehash

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/drift"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// concurrency is the number of claims that are reconciled at once. After an upgrade of the operator,
// that can be all of them.
const concurrency = 10

// Reconciler renews the hashes of claims.
type Reconciler struct {
	clusters *clients.Clusters
	drifts   *drift.Cache
}

// NewReconciler returns the reconciler for the served Cluster.
func NewReconciler(clusters *clients.Clusters, catalog *catalog.Catalog, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{clusters: clusters, drifts: drift.NewCache(clusters, catalog, clock)}
}

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("capi.machinehash").
		For(&karpv1.NodeClaim{}, builder.WithPredicates(claimChanged())).
		Watches(&v1alpha1.KarpenterMachineTemplate{}, handler.EnqueueRequestsFromMapFunc(r.ofTemplate), builder.WithPredicates(templateChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of machine hashes: %w", err)
	}
	return nil
}

// claimChanged passes updates of a claim that change its hashes, or its Node is registered.
func claimChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isClaim := e.ObjectOld.(*karpv1.NodeClaim)
			after, isStill := e.ObjectNew.(*karpv1.NodeClaim)
			return isClaim && isStill && (nodeclaims.IsRegistered(before) != nodeclaims.IsRegistered(after) ||
				before.Annotations[v1alpha1.MachineHashesAnnotation] != after.Annotations[v1alpha1.MachineHashesAnnotation] ||
				before.Annotations[v1alpha1.TemplateRevisionAnnotation] != after.Annotations[v1alpha1.TemplateRevisionAnnotation])
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// templateChanged passes updates of a template that can change whether hashes can be renewed: it becomes
// Ready, Cluster API acts again, or the content or the API version changes of what it refers to.
func templateChanged() predicate.Predicate {
	state := func(template *v1alpha1.KarpenterMachineTemplate) any {
		conditions := template.StatusConditions(status.WithObservedOnly()) // events share objects with the cache
		ready, version := lo.FromPtr(conditions.Get(status.ConditionReady)), lo.FromPtr(conditions.Get(v1alpha1.ConditionVersionReady))
		return [...]any{
			ready.IsTrue(), ready.ObservedGeneration, template.Generation, template.FromHash(), template.Status.AcceptedHash, template.Status.Version,
			conditions.Get(v1alpha1.ConditionMachinesProgressing).IsFalse(), version.Message,
		}
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isTemplate := e.ObjectOld.(*v1alpha1.KarpenterMachineTemplate)
		after, isStill := e.ObjectNew.(*v1alpha1.KarpenterMachineTemplate)
		return isTemplate && isStill && state(before) != state(after)
	}}
}

// ofTemplate returns the claims of a template.
func (r *Reconciler) ofTemplate(ctx context.Context, object client.Object) []reconcile.Request {
	template, is := object.(*v1alpha1.KarpenterMachineTemplate)
	if !is {
		return nil
	}
	claims, err := catalog.Claims(ctx, r.clusters, template)
	if err != nil {
		log.FromContext(ctx).Error(err, "listing NodeClaims")
	}
	return lo.Map(claims, func(_ karpv1.NodeClaim, i int) reconcile.Request {
		return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&claims[i])}
	})
}

// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates,verbs=list;watch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=machinedeployments;machinepools,verbs=get;list;watch

// Reconcile renews the hashes of one claim. It does nothing while nothing can be decided for its
// template, whose event then triggers the next reconcile.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &karpv1.NodeClaim{}
	if err := r.clusters.Workload.GetClient().Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !drift.CanDrift(claim) {
		return reconcile.Result{}, nil
	}
	renewed, err := r.renewed(ctx, claim)
	if err != nil {
		return reconcile.Result{}, err
	}
	if maps.Equal(renewed, claim.Annotations) {
		return reconcile.Result{}, nil
	}
	return requeue.AfterConflict(reconcile.Result{}, nodeclaims.RenewHashes(ctx, r.clusters.Workload.GetClient(), claim, renewed))
}

// renewed returns the annotations of a claim with present hashes in place of those that cannot be compared. They
// stay as they are if nothing can be decided now.
func (r *Reconciler) renewed(ctx context.Context, claim *karpv1.NodeClaim) (map[string]string, error) {
	template, err := r.clusters.SharedTemplate(ctx, claim.Spec.NodeClassRef.Name)
	if err != nil || template == nil {
		return claim.Annotations, err
	}
	launch, err := r.launchOf(ctx, template, claim)
	if err != nil || launch == nil {
		return claim.Annotations, err
	}
	renewed, outdated := claim.Annotations, false
	if launch.Generated != nil { // the Machines of an adopted resource have no hashes
		version, err := r.versionOf(ctx, claim)
		if err != nil {
			return nil, err
		}
		renewed = drift.Renew(renewed, launch.Generated.Hashes, version)
		outdated = drift.Compare(generate.ParseHashes(renewed[v1alpha1.MachineHashesAnnotation]), launch.Generated.Hashes) != ""
	}
	return drift.RenewRevision(renewed, catalog.RevisionOf(template), outdated), nil
}

// launchOf returns what a template launches now for the offering of a claim; nil if that cannot be decided, or nothing
// can be launched.
func (r *Reconciler) launchOf(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, claim *karpv1.NodeClaim) (*generate.Launch, error) {
	answers, decided, err := r.drifts.Of(ctx, template)
	if err != nil || !decided {
		return nil, err
	}
	launch, err := answers.LaunchOf(ctx, catalog.KeyOf(claim))
	if errors.As(err, &generate.UnlaunchableError{}) || catalog.IsUndiscovered(err) {
		return nil, nil
	}
	return launch, err
}

// versionOf returns the Kubernetes version that the scalable resource of a claim gives to Machines;
// empty if it gives none or does not exist.
func (r *Reconciler) versionOf(ctx context.Context, claim *karpv1.NodeClaim) (string, error) {
	resource, err := scalable.Get(ctx, r.clusters, claim.Annotations[v1alpha1.ScalableResourceAnnotation])
	if apierrors.IsNotFound(err) || err == nil && resource == nil {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return resource.MachineTemplate().Spec.Version, nil
}
