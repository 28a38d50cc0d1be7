// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// Scale sets the planned replicas in a copy of the resource, or in a resource that will be created.
// If replicas are lowered because the MachineSet is blocked, it also sets the time of that.
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
		// The cache may lack a Machine that was created meanwhile. It must not be linked yet.
	case set.Blocked || !set.Lowered || set.Probe:
		delete(annotations, v1alpha1.ReplicasLoweredAtAnnotation)
	}
	resource.SetAnnotations(annotations)
}
