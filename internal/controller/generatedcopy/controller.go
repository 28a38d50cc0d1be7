// SPDX-License-Identifier: Apache-2.0

package generatedcopy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

const (
	// concurrency is the number of templates whose copies are maintained at once.
	concurrency = 10
	// timeout bounds a reconcile, which can wait for the first list of each kind.
	timeout = time.Minute
)

// Reconciler maintains the copies of all templates of the served Cluster.
type Reconciler struct {
	clusters  *clients.Clusters
	catalog   *catalog.Catalog
	clock     clock.PassiveClock
	templates *enqueue.Templates
	// spacing only collects events, because a reconcile reads no claims.
	spacing *enqueue.Spacing
	kinds   *enqueue.Kinds
}

// NewReconciler returns the reconciler for the served Cluster.
func NewReconciler(clusters *clients.Clusters, catalog *catalog.Catalog, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{clusters: clusters, catalog: catalog, clock: clock, templates: enqueue.NewTemplates(clusters), spacing: enqueue.NewSpacing(clock)}
}

// Register adds the reconciler to a manager.
func (r *Reconciler) Register(_ context.Context, mgr manager.Manager) error {
	management := r.clusters.Management.GetCache()
	b := ctrl.NewControllerManagedBy(mgr).Named("capi.generatedcopy").
		For(&v1alpha1.KarpenterMachineTemplate{}, builder.WithPredicates(enqueue.TemplateChanged()))
	for _, kind := range scalable.Kinds() {
		b = b.WatchesRawSource(source.Kind(management, scalable.NewObject(kind), r.spacing.Later(r.templates.OfResource)))
	}
	c, err := b.
		WatchesRawSource(source.Kind[client.Object](r.clusters.Workload.GetCache(), &karpv1.NodeClaim{}, r.spacing.Later(r.templates.OfClaim), enqueue.Deleted())).
		WatchesRawSource(source.Kind[client.Object](r.clusters.Workload.GetCache(), &v1alpha1.InstanceTypeCatalog{}, enqueue.Now(r.templates.OfCatalog), predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind[client.Object](management, &clusterv1.MachineDeployment{}, r.spacing.Later(r.templates.OfPattern), pattern.Changed())).
		WatchesRawSource(source.Kind[client.Object](management, &clusterv1.Cluster{}, enqueue.Now(r.templates.All), enqueue.ClusterChanged())).
		WatchesRawSource(source.Kind[client.Object](management, reference.CRD(), enqueue.Now(r.templates.All), reference.ContractChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, ReconciliationTimeout: timeout}).
		Build(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of generated copies: %w", err)
	}
	r.kinds = enqueue.NewKinds(c, management)
	return mgr.Add(manager.RunnableFunc(r.watchLeftovers))
}

// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=karpentermachinetemplates,verbs=list;watch;patch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.cluster.x-k8s.io,resources=instancetypecatalogs,verbs=list;watch
// +kubebuilder:rbac:roleName=workload-role,groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch
// +kubebuilder:rbac:roleName=management-role,groups=cluster.x-k8s.io,resources=clusters;machinedeployments;machinepools,verbs=get;list;watch
// +kubebuilder:rbac:roleName=management-role,groups=infrastructure.cluster.x-k8s.io;bootstrap.cluster.x-k8s.io,resources=*,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:roleName=management-cluster-role,groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch

// Reconcile maintains the copies of the template of the given name, and ends its deletion. Cluster API
// deletes the copies with their Cluster.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	template, err := r.clusters.Template(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	resources, err := scalable.List(ctx, r.clusters, client.MatchingLabels{v1alpha1.TemplateLabel: request.Name})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("KarpenterMachineTemplate %s: %w", request.Name, err)
	}
	watched := r.watch(ctx, template, resources)
	paused, ends, err := r.clusterState(ctx)
	if err != nil || paused {
		return reconcile.Result{}, errors.Join(watched, err)
	}
	var result reconcile.Result
	kept := generated{resources: len(resources), endsWithCluster: ends}
	if !ends {
		kept.copies, result.RequeueAfter, err = r.keepCopies(ctx, request.Name, template, resources)
	}
	if err = errors.Join(watched, err); err == nil {
		err = r.removeFinalizer(ctx, template, kept)
	}
	return requeue.AfterConflict(result, err)
}

// clusterState reports whether the served Cluster is paused, and whether it is being deleted or does not
// exist.
func (r *Reconciler) clusterState(ctx context.Context) (paused, ends bool, err error) {
	cluster, err := r.clusters.Cached(ctx)
	if err != nil || cluster == nil {
		return false, err == nil, err
	}
	return lo.FromPtr(cluster.Spec.Paused), !cluster.DeletionTimestamp.IsZero(), nil
}

// watch watches the kinds that a template and its scalable resources refer to, and those of what
// is generated from them.
func (r *Reconciler) watch(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, resources []*scalable.Resource) error {
	var errs []error
	if template != nil {
		references, err := generate.References(ctx, r.clusters, template)
		bases, kindsErr := r.kindsOf(ctx, lo.Map(references, func(reference generate.Reference, _ int) schema.GroupKind { return reference.GroupKind() }))
		errs = append(errs, err, kindsErr)
		for _, base := range bases {
			made := scalable.KindOf(template.Spec.ScalableResource).MadeOf(base)
			errs = append(errs, r.kinds.Watch(base, r.spacing.Later(r.templates.OfReferenced)), r.kinds.Watch(made, r.spacing.Later(r.templates.OfGenerated)))
		}
	}
	generated, err := r.kindsOf(ctx, lo.FlatMap(resources, func(resource *scalable.Resource, _ int) []schema.GroupKind {
		return lo.Map(resource.References(), func(ref clusterv1.ContractVersionedObjectReference, _ int) schema.GroupKind {
			return ref.GroupKind()
		})
	}))
	errs = append(errs, err)
	for _, kind := range generated {
		errs = append(errs, r.kinds.Watch(kind, r.spacing.Later(r.templates.OfGenerated)))
	}
	return errors.Join(errs...)
}

// kindsOf returns kinds with their API versions, each once. It leaves out those that cannot be resolved,
// which are a condition of the template.
func (r *Reconciler) kindsOf(ctx context.Context, kinds []schema.GroupKind) ([]schema.GroupVersionKind, error) {
	var result []schema.GroupVersionKind
	var errs []error
	for _, kind := range lo.Uniq(kinds) {
		gvk, err := reference.Kind(ctx, r.clusters.Management.GetClient(), kind)
		if unusable := reference.Unusable(""); errors.As(err, &unusable) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		result = append(result, gvk)
	}
	return result, errors.Join(errs...)
}
