// SPDX-License-Identifier: Apache-2.0

// Package instancetypecatalog reports in the status of an InstanceTypeCatalog what it offers, what is
// wrong with it, and how many templates use it. Package catalog reads catalogs itself, and does not
// depend on this status.
package instancetypecatalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// Reconciler keeps the status of the catalogs.
type Reconciler struct {
	clusters *clients.Clusters
}

// NewReconciler returns the reconciler for the catalogs of the workload cluster.
func NewReconciler(clusters *clients.Clusters) *Reconciler { return &Reconciler{clusters: clusters} }

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("capi.instancetypecatalog").
		For(&v1alpha1.InstanceTypeCatalog{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.KarpenterMachineTemplate{}, handler.EnqueueRequestsFromMapFunc(ofTemplate), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// ofTemplate returns the catalogs that a template refers to. For an update, controller-runtime calls it
// for the template before and after.
func ofTemplate(_ context.Context, object client.Object) []reconcile.Request {
	template, isTemplate := object.(*v1alpha1.KarpenterMachineTemplate)
	if !isTemplate {
		return nil
	}
	return lo.Map(template.Spec.CatalogRefs, func(ref v1alpha1.CatalogReference, _ int) reconcile.Request {
		return reconcile.Request{NamespacedName: client.ObjectKey{Name: ref.Name}}
	})
}

// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=instancetypecatalogs;karpentermachinetemplates,verbs=list;watch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=instancetypecatalogs/status,verbs=patch

// Reconcile reconciles one catalog.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	found := &v1alpha1.InstanceTypeCatalog{}
	if err := r.clusters.Workload.GetClient().Get(ctx, request.NamespacedName, found); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	templates := &v1alpha1.KarpenterMachineTemplateList{}
	if err := r.clusters.Workload.GetClient().List(ctx, templates, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing KarpenterMachineTemplates: %w", err)
	}
	stored := found.DeepCopy()
	setStatus(found, templates.Items)
	if equality.Semantic.DeepEqual(stored.Status, found.Status) {
		return reconcile.Result{}, nil
	}
	return requeue.AfterConflict(reconcile.Result{}, precondition.WriteStatus(ctx, r.clusters.Workload.GetClient(), stored, found, "patching the status of"))
}

// setStatus sets the status of a catalog, given all templates.
func setStatus(found *v1alpha1.InstanceTypeCatalog, templates []v1alpha1.KarpenterMachineTemplate) {
	checked := catalog.Check(&found.Spec)
	problems := checked.Problems
	found.Status.InstanceTypes, found.Status.Offerings = int32(checked.InstanceTypes), int32(checked.Offerings)
	found.Status.Templates = int32(lo.CountBy(templates, func(t v1alpha1.KarpenterMachineTemplate) bool { return t.RefersTo(found.Name) }))
	conditions := found.StatusConditions()
	var message string
	if len(problems) == 0 {
		conditions.SetTrue(v1alpha1.ConditionInstanceTypesValid)
	} else {
		message = budget.Text(fmt.Sprintf("%d of %d instance types cannot be used: %s", len(found.Spec.InstanceTypes)-checked.InstanceTypes, len(found.Spec.InstanceTypes), errors.Join(problems...)), budget.Message)
		conditions.SetFalse(v1alpha1.ConditionInstanceTypesValid, catalog.ReasonOf(problems[0]), message)
	}
	setAdjustments(found, checked.Adjustments)
	switch {
	case checked.InstanceTypes > 0:
		conditions.SetTrue(v1alpha1.ConditionInstanceTypesReady)
	case len(problems) > 0:
		conditions.SetFalse(v1alpha1.ConditionInstanceTypesReady, catalog.ReasonOf(problems[0]), message)
	default:
		conditions.SetFalse(v1alpha1.ConditionInstanceTypesReady, v1alpha1.ReasonNoInstanceTypes, "the catalog has no instance types: add some to spec.instanceTypes")
	}
}

// setAdjustments sets the condition for the adjustments of prices. A catalog without adjustments does not have it.
func setAdjustments(found *v1alpha1.InstanceTypeCatalog, problems []error) {
	all := lo.FromPtr(found.Spec.Pricing).Adjustments
	switch conditions := found.StatusConditions(); {
	case len(all) == 0:
		// It only fails for a condition on which Ready depends.
		_ = conditions.Clear(v1alpha1.ConditionPriceAdjustmentsValid)
	case len(problems) == 0:
		conditions.SetTrue(v1alpha1.ConditionPriceAdjustmentsValid)
	default:
		conditions.SetFalse(v1alpha1.ConditionPriceAdjustmentsValid, v1alpha1.ReasonAdjustmentsInvalid,
			budget.Text(fmt.Sprintf("%d of %d adjustments of prices have no effect: %s", len(problems), len(all), errors.Join(problems...)), budget.Message))
	}
}
