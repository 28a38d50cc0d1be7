// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"iter"

	"github.com/samber/lo"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// decided is a scalable resource as it was read, with what was decided from that.
type decided struct {
	*snapshot.Snapshot
	Plan planner.Plan
}

// settled yields the claims whose link is neither being written nor planned.
func (d *decided) settled() iter.Seq[*karpv1.NodeClaim] {
	return func(yield func(*karpv1.NodeClaim) bool) {
		for i := range d.Claims {
			if claim := &d.Claims[i]; !d.Plan.Linking.Has(claim.UID) && !yield(claim) {
				return
			}
		}
	}
}

// scale sets the planned replicas in a copy of the resource, or in a resource that will be created.
func (d *decided) scale(resource *scalable.Resource) {
	before := resource.Replicas()
	resource.SetReplicas(d.Plan.Replicas, d.State.Now)
	if resource.Replicas() == before || d.Plan.LoweredAt == nil {
		return
	}
	annotations := lo.OmitByKeys(resource.GetAnnotations(), []string{v1alpha1.ReplicasLoweredAtAnnotation})
	if at := *d.Plan.LoweredAt; !at.IsZero() {
		annotations[v1alpha1.ReplicasLoweredAtAnnotation] = timestamp.Format(at)
	}
	resource.SetAnnotations(annotations)
}
