// SPDX-License-Identifier: Apache-2.0

// Package enqueue maps events of both clusters to scalable resources, by their names.
package enqueue

import (
	"context"
	"strings"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

const (
	// concurrency is the number of scalable resources that a reconciler works on at once.
	concurrency = 10

	// MinRetry is the time after which an error is retried. It doubles each time up to MaxRetry.
	// When some causes end, no event of the resource follows: a webhook that rejected a
	// write, a missing right, or a provider ID that a claim of another resource has. The
	// maximum of controller-runtime is 1,000 s.
	MinRetry = 5 * time.Millisecond
	// MaxRetry is the longest time after which an error is retried.
	MaxRetry = 15 * time.Second
)

// Resources adds the watches for all objects on which the state of a scalable resource
// depends: itself, its claims, its Machines and MachineSets, and its Cluster. It also sets
// how many resources are reconciled at once, how far apart, and when errors are retried.
func Resources(b *builder.Builder, clusters *clients.Clusters, spacing *Spacing) *builder.Builder {
	management := clusters.Management.GetCache()
	for _, kind := range scalable.Kinds() {
		b = b.WatchesRawSource(source.Kind(management, scalable.NewObject(kind), spacing.of(client.Object.GetName)))
	}
	return b.
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](MinRetry, MaxRetry),
		}).
		WatchesRawSource(source.Kind[client.Object](clusters.Workload.GetCache(), &karpv1.NodeClaim{}, spacing.ofClaims(), changed())).
		WatchesRawSource(source.Kind[client.Object](management, &clusterv1.Machine{}, spacing.ofMachines(), changed())).
		WatchesRawSource(source.Kind[client.Object](management, &clusterv1.MachineSet{}, spacing.of(clients.ResourceOf), changed())).
		WatchesRawSource(source.Kind[client.Object](management, &clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(
			func(ctx context.Context, _ client.Object) []reconcile.Request { return all(ctx, clusters) }), ClusterChanged()))
}

// ClusterChanged passes events that decide whether Machines can be created in a Cluster: it
// is created, becomes ready, is paused or resumed, is being deleted, or is deleted. It also
// passes changes of its control plane, of its topology's version and replicas, and of its failure
// domains. It drops other updates, because Cluster API changes the rest of the status often.
func ClusterChanged() predicate.Predicate {
	usable := func(c *clusterv1.Cluster) any {
		initialized := c.Status.Initialization
		return [...]any{
			lo.FromPtr(c.Spec.Paused), !c.DeletionTimestamp.IsZero(), topologyReplicas(c), c.Spec.Topology.Version, c.Spec.ControlPlaneRef,
			strings.Join(clients.FailureDomains(c), ","),
			lo.FromPtr(initialized.InfrastructureProvisioned), lo.FromPtr(initialized.ControlPlaneInitialized),
		}
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isCluster := e.ObjectOld.(*clusterv1.Cluster)
		after, isStill := e.ObjectNew.(*clusterv1.Cluster)
		return !isCluster || !isStill || usable(before) != usable(after)
	}}
}

// TemplateChanged passes updates of a template that can change what is generated from it, for how
// long that stays, and its Kubernetes version. It drops other changes of the status.
func TemplateChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isTemplate := e.ObjectOld.(*v1alpha1.KarpenterMachineTemplate)
		after, isStill := e.ObjectNew.(*v1alpha1.KarpenterMachineTemplate)
		return isTemplate && isStill && (before.Status.Version != after.Status.Version || before.FromHash() != after.FromHash())
	}})
}

// topologyReplicas returns, as a comparable value, which replicas the topology of a Cluster
// sets.
func topologyReplicas(cluster *clusterv1.Cluster) string {
	return strings.Join(clients.TopologyReplicas(cluster), ",")
}

// UnavailableChanged passes updates that change the unavailable offerings of a template.
func UnavailableChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isTemplate := e.ObjectOld.(*v1alpha1.KarpenterMachineTemplate)
		after, isStill := e.ObjectNew.(*v1alpha1.KarpenterMachineTemplate)
		return !isTemplate || !isStill || !equality.Semantic.DeepEqual(before.Status.UnavailableOfferings, after.Status.UnavailableOfferings)
	}}
}

// ResourcesOfTemplate enqueues the scalable resources of a template: those that exist, and
// those that only claims name so far.
func ResourcesOfTemplate(clusters *clients.Clusters) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, template client.Object) []reconcile.Request {
		return ofTemplate(ctx, clusters, template.GetName())
	})
}

// ResourcesOfFollowers enqueues the scalable resources of the templates that follow a MachineDeployment.
func ResourcesOfFollowers(clusters *clients.Clusters) handler.EventHandler {
	templates := NewTemplates(clusters)
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, deployment client.Object) []reconcile.Request {
		return lo.FlatMap(templates.OfPattern(ctx, deployment), func(name string, _ int) []reconcile.Request { return ofTemplate(ctx, clusters, name) })
	})
}

func ofTemplate(ctx context.Context, clusters *clients.Clusters, name string) []reconcile.Request {
	return list(ctx, clusters,
		[]client.ListOption{client.MatchingLabels{v1alpha1.TemplateLabel: name}},
		[]client.ListOption{client.MatchingFields{clients.NodeClaimTemplateField: name}})
}

func ofClaim(object client.Object) string {
	return object.GetAnnotations()[v1alpha1.ScalableResourceAnnotation]
}

// all returns every scalable resource that exists or that a claim names.
func all(ctx context.Context, clusters *clients.Clusters) []reconcile.Request {
	return list(ctx, clusters, []client.ListOption{client.HasLabels{v1alpha1.TemplateLabel}}, nil)
}

// list returns the scalable resources that exist or that a claim names. It ignores errors of
// a cache, because each resource is also enqueued by its own events.
func list(ctx context.Context, clusters *clients.Clusters, ofResources, ofClaims []client.ListOption) []reconcile.Request {
	names := sets.New[string]()
	if resources, err := scalable.List(ctx, clusters, ofResources...); err == nil {
		for _, resource := range resources {
			names.Insert(resource.GetName())
		}
	}
	claims := &karpv1.NodeClaimList{}
	if err := clusters.Workload.GetClient().List(ctx, claims, ofClaims...); err == nil {
		for i := range claims.Items {
			names.Insert(ofClaim(&claims.Items[i]))
		}
	}
	return lo.Map(sets.List(names.Delete("")), func(name string, _ int) reconcile.Request { return request(name) })
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// of enqueues the resource to which an object belongs, and on an update also the one to which it
// belonged before.
func (s *Spacing) of(resource func(client.Object) string) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { s.add(q, resource(e.Object), ofOthers) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			s.add(q, resource(e.ObjectOld), ofOthers)
			s.add(q, resource(e.ObjectNew), ofOthers)
		},
		DeleteFunc:  func(_ context.Context, e event.DeleteEvent, q queue) { s.add(q, resource(e.Object), ofOthers) },
		GenericFunc: func(_ context.Context, e event.GenericEvent, q queue) { s.add(q, resource(e.Object), ofOthers) },
	}
}
