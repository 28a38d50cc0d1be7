// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

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
