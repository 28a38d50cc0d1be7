// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// maxScalableResources is the maximum of status.scalableResources in the CRD.
const maxScalableResources = 1000

// setScalableResources sets the scalable resources of the template, and the number of Machines.
func (r *Reconciler) setScalableResources(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	list, err := scalable.List(ctx, r.clusters, client.MatchingLabels{v1alpha1.TemplateLabel: template.Name})
	if err != nil {
		return fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	var machines int32
	resources := make([]v1alpha1.ScalableResourceStatus, 0, len(list))
	for _, resource := range list {
		offering := scalable.OfferingOf(resource)
		paused, err := resource.Suspended(ctx, r.clusters)
		if err != nil {
			return err
		}
		all, ready := resource.Machines()
		machines += all
		resources = append(resources, v1alpha1.ScalableResourceStatus{
			Name:          resource.GetName(),
			Kind:          resource.Kind().Name(),
			InstanceType:  offering.InstanceType,
			Zone:          offering.Zone,
			CapacityType:  offering.CapacityType,
			Paused:        paused,
			Replicas:      resource.Replicas(),
			ReadyReplicas: ready,
		})
	}
	template.Status.Machines = machines
	template.Status.ScalableResources = listed(resources)
	return nil
}

// listed returns the resources for which the status has room, by name. If there are too many,
// it prefers those that are paused, whose offerings Karpenter must not choose, and then those
// whose replicas are not all ready.
func listed(resources []v1alpha1.ScalableResourceStatus) []v1alpha1.ScalableResourceStatus {
	rank := func(r v1alpha1.ScalableResourceStatus) int {
		switch {
		case r.Paused:
			return 0
		case r.Replicas != r.ReadyReplicas:
			return 1
		default:
			return 2
		}
	}
	byName := func(a, b v1alpha1.ScalableResourceStatus) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(resources, func(a, b v1alpha1.ScalableResourceStatus) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), byName(a, b))
	})
	resources = resources[:min(maxScalableResources, budget.Fit(resources, budget.Resources))]
	slices.SortFunc(resources, byName)
	return resources
}

// setLimits counts the NodeClaims that maxMachines and reservations limit.
func (r *Reconciler) setLimits(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	limits, err := r.catalog.Limits(ctx, template)
	if err != nil {
		return err
	}
	claims, err := catalog.ClaimsThatCount(ctx, r.clusters, template, limits)
	if err != nil {
		return err
	}
	usage := limits.Use(claims)
	template.Status.NodeClaims, template.Status.LimitedOfferings = usage.Total(), usage.Status()
	r.catalog.SetUsage(template, usage)
	return nil
}

// readAgain is after what time kinds are read again that could not be read. No event shows that a kind can be
// listed.
const readAgain = time.Minute

// setMachinesProgressing repeats what Cluster API reports for the oldest NodeClaim that waits
// for it (see package scalableresource). The message omits the number of these NodeClaims, because
// it changes often. The condition is Unknown if the infrastructure or bootstrap objects of Machines cannot be
// read: they show why a Machine does not progress. While their first list can still arrive, it stays as it is. It returns after
// what time that is to be decided again.
func (r *Reconciler) setMachinesProgressing(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (time.Duration, error) {
	claims, err := catalog.Claims(ctx, r.clusters, template)
	if err != nil {
		return 0, err
	}
	waiting := lo.Filter(claims, func(_ karpv1.NodeClaim, i int) bool {
		return nodeclaims.NeedsMachine(&claims[i]) && nodeclaims.IsStalled(&claims[i])
	})
	conditions := template.StatusConditions()
	if len(waiting) == 0 {
		unlisted, err := r.unlisted(ctx, template)
		switch {
		case err != nil:
			return 0, err
		case unlisted != nil && unlisted.Awaited:
			return readAgain, nil
		case unlisted != nil:
			conditions.SetUnknownWithReason(v1alpha1.ConditionMachinesProgressing, v1alpha1.ReasonObjectsNotReadable,
				fmt.Sprintf("%s. Until then, only launchTimeoutSeconds shows that a Machine of this template could not be launched", unlisted))
		default:
			conditions.SetTrue(v1alpha1.ConditionMachinesProgressing)
		}
		return 0, nil
	}
	oldest := lo.MinBy(waiting, func(a, b karpv1.NodeClaim) bool {
		return a.CreationTimestamp.Before(&b.CreationTimestamp) || a.CreationTimestamp.Equal(&b.CreationTimestamp) && a.Name < b.Name
	})
	stall := nodeclaims.ConditionOf(&oldest, v1alpha1.ConditionMachineAvailable)
	conditions.SetFalse(v1alpha1.ConditionMachinesProgressing, stall.Reason,
		fmt.Sprintf("NodeClaim %s waits for Cluster API: %s", oldest.Name, stall.Message))
	return 0, nil
}

// unlisted returns why infrastructure or bootstrap objects of a template's Machines cannot be read; nil if they
// can. Templates that have no Machines read none.
func (r *Reconciler) unlisted(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (*reference.Unlisted, error) {
	resources, err := scalable.List(ctx, r.clusters, client.MatchingLabels{v1alpha1.TemplateLabel: template.Name})
	if err != nil {
		return nil, fmt.Errorf("KarpenterMachineTemplate %s: %w", template.Name, err)
	}
	read := sets.New[schema.GroupKind]()
	for _, resource := range resources {
		if all, _ := resource.Machines(); all == 0 && resource.Replicas() == 0 {
			continue
		}
		kinds, err := r.kindsOfMachines(ctx, resource)
		for _, kind := range kinds {
			if err == nil && !read.Has(kind) {
				read.Insert(kind)
				err = r.readOne(ctx, kind)
			}
		}
		if unlisted := (reference.Unlisted{}); errors.As(err, &unlisted) {
			return &unlisted, nil
		}
		// Other conditions report kinds that Cluster API cannot use.
		if unusable := reference.Unusable(""); err != nil && !errors.As(err, &unusable) {
			return nil, err
		}
	}
	return nil, nil
}

// kindsOfMachines returns the kinds of infrastructure and bootstrap objects that the Machines of a resource have.
func (r *Reconciler) kindsOfMachines(ctx context.Context, resource *scalable.Resource) ([]schema.GroupKind, error) {
	var kinds []schema.GroupKind
	for _, ref := range resource.References() {
		// Cluster API names what it creates from a template in this way (controllers/external/util.go).
		kinds = append(kinds, schema.GroupKind{Group: ref.APIGroup, Kind: strings.TrimSuffix(ref.Kind, clusterv1.TemplateSuffix)})
	}
	if resource.Kind().HasMachineSets() {
		return kinds, nil
	}
	pool, err := scalable.InfrastructureOf(ctx, r.clusters, resource)
	if err != nil || pool == nil {
		return kinds, err
	}
	if kind, _, err := unstructured.NestedString(pool.Object, "status", "infrastructureMachineKind"); err == nil && kind != "" {
		kinds = append(kinds, schema.GroupKind{Group: pool.GroupVersionKind().Group, Kind: kind})
	}
	return kinds, nil
}

// readOne reads an object of a kind from the cache.
func (r *Reconciler) readOne(ctx context.Context, kind schema.GroupKind) error {
	management := r.clusters.Management.GetClient()
	gvk, err := reference.Kind(ctx, management, kind)
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return management.List(ctx, list, client.InNamespace(r.clusters.Cluster.Namespace), client.Limit(1), client.UnsafeDisableDeepCopy)
}

// countsInterval is the least time between a write of the status and one that changes only counts. Each write
// makes Karpenter core look at all NodeClaims of the template again.
const countsInterval = 10 * time.Second

// counting are the conditions whose messages count or name NodeClaims, Nodes and generated objects. Ready
// repeats the message of Deletable.
var counting = sets.New(status.ConditionReady, v1alpha1.ConditionDeletable, v1alpha1.ConditionMachinesProgressing, v1alpha1.ConditionNodesCurrent, v1alpha1.ConditionNodesTainted)

// onlyCounts reports whether two statuses differ in nothing but counts: numbers and messages that change with each
// NodeClaim or Machine, and on which no decision depends.
func onlyCounts(a, b *v1alpha1.KarpenterMachineTemplateStatus) bool {
	return equality.Semantic.DeepEqual(withoutCounts(a), withoutCounts(b))
}

// withoutCounts returns a copy of a status without counts. Of the scalable resources, it has those that are paused:
// Karpenter must not choose their offerings.
func withoutCounts(of *v1alpha1.KarpenterMachineTemplateStatus) *v1alpha1.KarpenterMachineTemplateStatus {
	rest := of.DeepCopy()
	rest.Machines, rest.NodeClaims, rest.AvailableOfferings, rest.LimitedOfferings = 0, 0, 0, nil
	rest.ScalableResources = lo.FilterMap(rest.ScalableResources, func(resource v1alpha1.ScalableResourceStatus, _ int) (v1alpha1.ScalableResourceStatus, bool) {
		resource.Replicas, resource.ReadyReplicas = 0, 0
		return resource, resource.Paused
	})
	for i := range rest.Conditions {
		if counting.Has(rest.Conditions[i].Type) {
			rest.Conditions[i].Message = ""
		}
	}
	return rest
}

// untilCounts returns after what time counts alone can be written; zero if they can be now. The time of the last write is
// only in memory, so after a restart they are written at once.
func (r *Reconciler) untilCounts(template string) time.Duration {
	written, known := r.written.Load(template)
	if !known {
		return 0
	}
	return max(0, countsInterval-r.clock.Since(written.(time.Time)))
}
