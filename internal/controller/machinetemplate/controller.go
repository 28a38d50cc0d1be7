// SPDX-License-Identifier: Apache-2.0

// Package machinetemplate tells on a KarpenterMachineTemplate's status whether it
// can be used, what it offers, and what was generated from it. There is one file
// for each condition.
package machinetemplate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

const (
	// concurrency is the number of templates that are worked on at once.
	concurrency = 10

	// window collects changes of NodeClaims and of generated objects, which change all
	// the time during a scale-out, into one write of the template's status.
	window = time.Second

	// setTimeout ends waiting for a kind's objects to be listed, which does not happen
	// while the operator may not read them. What is left of timeout is for writing the
	// status, and for the template's copies.
	setTimeout = time.Minute
	timeout    = setTimeout + 30*time.Second
)

// Reconciler keeps the status of the templates.
type Reconciler struct {
	clusters *operator.Clusters
	catalog  *catalog.Catalog
	recorder events.Recorder
	clock    clock.PassiveClock
	watches  *watches
	// examined is what is known of what each template generates: see generated.go.
	examined sync.Map
}

// NewReconciler returns the reconciler for the served Cluster.
func NewReconciler(clusters *operator.Clusters, catalog *catalog.Catalog, recorder events.Recorder, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{clusters: clusters, catalog: catalog, recorder: recorder, clock: clock}
}

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	management := r.clusters.Management.GetCache()
	everyTemplate := handler.EnqueueRequestsFromMapFunc(r.everyTemplate)
	b := ctrl.NewControllerManagedBy(mgr).Named("capi.machinetemplate").For(&v1alpha1.KarpenterMachineTemplate{})
	for _, kind := range scalable.Kinds() {
		b = b.WatchesRawSource(source.Kind(management, scalable.NewObject(kind), later(r.ofResource)))
	}
	c, err := b.
		WatchesRawSource(source.Kind[client.Object](r.clusters.Workload.GetCache(), &karpv1.NodeClaim{}, later(ofClaim))).
		WatchesRawSource(source.Kind[client.Object](management, &clusterv1.Cluster{}, everyTemplate, enqueue.ClusterChanged())).
		WatchesRawSource(source.Kind[client.Object](management, reference.CRD(), everyTemplate, contractChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, ReconciliationTimeout: timeout}).
		Build(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of KarpenterMachineTemplates: %w", err)
	}
	r.watches = &watches{controller: c, cache: management}
	return nil
}

// +kubebuilder:rbac:groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinedeployments;machinepools,verbs=get;list;watch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io;bootstrap.cluster.x-k8s.io,resources=*,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch

// Reconcile works on the template of the given name.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := r.clusters.Workload.GetClient().Get(ctx, request.NamespacedName, template); err != nil {
		if apierrors.IsNotFound(err) {
			r.catalog.Forget(request.Name)
			r.examined.Delete(request.Name)
			again, err := r.keepCopies(ctx, request.Name, nil)
			return reconcile.Result{RequeueAfter: again}, err
		}
		return reconcile.Result{}, fmt.Errorf("getting KarpenterMachineTemplate %s: %w", request.Name, err)
	}
	stored := template.DeepCopy()
	examineAgain, setErr := r.setStatus(ctx, template)
	patchErr := r.patchStatus(ctx, template, stored)
	copiesAgain, copiesErr := r.keepCopies(ctx, template.Name, template)
	if err := errors.Join(setErr, patchErr, copiesErr); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: requeue.Soonest(copiesAgain, examineAgain, catalog.ChangesIn(template.Status.UnavailableOfferings, r.clock.Now()))}, nil
}

// setStatus sets what can be found out now. A part that fails stays as it is stored, with
// the generation that it was found for, so that the template does not become Ready in a
// generation that was not examined in full. It returns after what time to examine again.
func (r *Reconciler) setStatus(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, setTimeout)
	defer cancel()
	var examineAgain time.Duration
	var errs []error
	for _, set := range []func(context.Context, *v1alpha1.KarpenterMachineTemplate) error{
		r.setClusterReady,
		r.setInfrastructureReady,
		r.setBootstrapReady,
		func(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (err error) {
			examineAgain, err = r.setInstanceTypesReady(ctx, template)
			return err
		},
		r.setReady,
		r.setOfferingsAvailable,
		r.setScalableResources,
		r.setLimits,
		r.setMachinesProgressing,
		r.setCapacityAccurate,
		r.setNodesTainted,
		r.setOfferingsValid,
		r.setAvailable,
	} {
		errs = append(errs, set(ctx, template))
	}
	// Messages are put together from what others have written, of any length.
	for i := range template.Status.Conditions {
		condition := &template.Status.Conditions[i]
		condition.Message = budget.Text(condition.Message, budget.Message)
	}
	return examineAgain, errors.Join(errs...)
}

// patchStatus writes the status if it is another than what is stored.
func (r *Reconciler) patchStatus(ctx context.Context, template, stored *v1alpha1.KarpenterMachineTemplate) error {
	if equality.Semantic.DeepEqual(stored.Status, template.Status) {
		return nil
	}
	// With the resourceVersion as precondition, since lists are replaced as a whole.
	err := r.clusters.Workload.GetClient().Status().Patch(ctx, template, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	if requeue.IsChanged(err) {
		return nil // its event brings the next reconcile
	}
	if err != nil {
		r.recorder.Publish(statusNotWritten(template, err))
		return fmt.Errorf("patching the status of KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	return nil
}

// everyTemplate enqueues all templates; there are few of them.
func (r *Reconciler) everyTemplate(ctx context.Context, _ client.Object) []reconcile.Request {
	return lo.Map(r.templates(ctx, func(*v1alpha1.KarpenterMachineTemplate) bool { return true }), func(name string, _ int) reconcile.Request { return requestOf(name) })
}

// templates returns the names of those templates.
func (r *Reconciler) templates(ctx context.Context, which func(*v1alpha1.KarpenterMachineTemplate) bool) []string {
	templates := &v1alpha1.KarpenterMachineTemplateList{}
	if err := r.clusters.Workload.GetClient().List(ctx, templates, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing KarpenterMachineTemplates")
		return nil
	}
	return lo.FilterMap(templates.Items, func(t v1alpha1.KarpenterMachineTemplate, i int) (string, bool) {
		return t.Name, which(&templates.Items[i])
	})
}

// ofGenerated returns the template that an object was generated for; none if it was
// not generated, or belongs to another Cluster.
func (r *Reconciler) ofGenerated(_ context.Context, object client.Object) []string {
	return lo.Compact([]string{scalable.TemplateOf(object, r.clusters.Cluster)})
}

// ofReferenced returns, for an object of a kind that templates refer to, the template
// that it was generated for. Any template can refer to what was not generated. Another
// Cluster's generated object is of no template here.
func (r *Reconciler) ofReferenced(ctx context.Context, object client.Object) []string {
	if _, generated := object.GetLabels()[v1alpha1.TemplateLabel]; generated {
		return r.ofGenerated(ctx, object)
	}
	return r.templates(ctx, func(*v1alpha1.KarpenterMachineTemplate) bool { return true })
}

// ofResource returns the template that a scalable resource was generated from. For
// one that this operator has not made, it returns all that look for such.
func (r *Reconciler) ofResource(ctx context.Context, object client.Object) []string {
	name := object.GetLabels()[v1alpha1.TemplateLabel]
	if _, adopted := object.GetAnnotations()[v1alpha1.AdoptedAnnotation]; name != "" && !adopted {
		return []string{name}
	}
	return r.templates(ctx, func(t *v1alpha1.KarpenterMachineTemplate) bool {
		return t.Name == name || t.Spec.Discovery != nil && t.Spec.Discovery.MachineDeployments != nil
	})
}

// ofClaim returns the template of a NodeClaim.
func ofClaim(_ context.Context, object client.Object) []string {
	claim, isClaim := object.(*karpv1.NodeClaim)
	if !isClaim || claim.Spec.NodeClassRef == nil || claim.Spec.NodeClassRef.Kind != v1alpha1.Kind {
		return nil
	}
	return []string{claim.Spec.NodeClassRef.Name}
}

// later enqueues templates at the end of the window.
func later(templates func(context.Context, client.Object) []string) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(ctx context.Context, q queue, object client.Object) {
		for _, name := range templates(ctx, object) {
			q.AddAfter(requestOf(name), window)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, q, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object) },
	}
}

func requestOf(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// contractChanged lets through what can change how a reference is resolved.
func contractChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
}
