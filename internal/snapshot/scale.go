// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// Scale writes the planned replicas into a copy of the resource or into one that is to be
// created. Replicas that are lowered because the MachineSet is blocked get the time of that.
func (s *Snapshot) Scale(resource *scalable.Resource) {
	before := resource.Replicas()
	resource.SetReplicas(s.Plan.Replicas, s.Now)
	if resource.Replicas() == before {
		return
	}
	annotations := lo.Assign(resource.GetAnnotations())
	switch set, _ := s.scaling.(planner.MachineSet); {
	case set.Blocked && resource.Replicas() < before:
		annotations[v1alpha1.ReplicasLoweredAtAnnotation] = timestamp.Format(s.Now)
	case set.Lowered && resource.Replicas() < before:
		// A Machine that was created meanwhile may not be in the cache: it stays unlinked.
	case set.Blocked || !set.Lowered || set.Probe:
		delete(annotations, v1alpha1.ReplicasLoweredAtAnnotation)
	}
	resource.SetAnnotations(annotations)
}
