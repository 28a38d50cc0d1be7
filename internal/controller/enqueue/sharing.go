// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"context"
	"slices"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// SharingLimits returns the other templates for which a NodeClaim can count toward a limit: those that can have the same
// reservation, InstanceTypeCatalog or infrastructure template.
func (t *Templates) SharingLimits(ctx context.Context, object client.Object) []string {
	own := t.OfClaim(ctx, object)
	if len(own) == 0 {
		return nil
	}
	template, err := t.clusters.SharedTemplate(ctx, own[0])
	if err != nil {
		log.FromContext(ctx).Error(err, "reading KarpenterMachineTemplate", "KarpenterMachineTemplate", own[0])
		return nil
	}
	if template == nil {
		template = &v1alpha1.KarpenterMachineTemplate{}
	}
	reserved := object.GetLabels()[v1alpha1.ReservationIDLabel] != ""
	return t.names(ctx, func(other *v1alpha1.KarpenterMachineTemplate) bool {
		return other.Name != own[0] && (reserved || shareCatalog(template, other) || shareDiscovery(template, other))
	})
}

func shareCatalog(one, other *v1alpha1.KarpenterMachineTemplate) bool {
	return slices.ContainsFunc(one.Spec.CatalogRefs, func(ref v1alpha1.CatalogReference) bool { return other.RefersTo(ref.Name) })
}

func shareDiscovery(one, other *v1alpha1.KarpenterMachineTemplate) bool {
	kind := func(template *v1alpha1.KarpenterMachineTemplate) schema.GroupKind {
		found := lo.FromPtr(lo.FromPtr(template.Spec.Discovery).InfrastructureTemplates)
		return schema.GroupKind{Group: found.APIGroup, Kind: found.Kind}
	}
	return !kind(one).Empty() && kind(one) == kind(other)
}

// LimitsChanged passes the events of NodeClaims that change how much of a limit is used.
func LimitsChanged() predicate.Predicate {
	uses := func(object client.Object) bool {
		claim, isClaim := object.(*karpv1.NodeClaim)
		return isClaim && catalog.Launched(claim)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return uses(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return uses(e.ObjectOld) != uses(e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return uses(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
