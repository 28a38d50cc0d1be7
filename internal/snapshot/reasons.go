// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

const (
	// LimitIsReached keeps a claim without a Machine.
	LimitIsReached planner.Reason = "the limit of the template, of the offering or of its reservation is reached"
	// ClusterIsDeleting keeps replicas from being raised.
	ClusterIsDeleting planner.Reason = "the Cluster is being deleted, so no Machines are requested"
	// ControlledByOthers keeps everything as it is.
	ControlledByOthers planner.Reason = "Cluster API rolls out the resource, or another controller sets its replicas"
)

// addReasons adds reasons to the plan that the planner does not know.
func (s *Snapshot) addReasons() {
	if s.Plan.Reasons == nil {
		s.Plan.Reasons = map[string]planner.Reason{}
	}
	for i := range s.Claims {
		if claim := &s.Claims[i]; s.exceeding.Has(claim.UID) && nodeclaims.NeedsMachine(claim) {
			s.Plan.Reasons["NodeClaim "+claim.Name] = LimitIsReached
		}
	}
	switch {
	case s.Suspended:
		s.Plan.Reasons["replicas"] = ControlledByOthers
	case s.ClusterDeleting:
		s.Plan.Reasons["replicas"] = ClusterIsDeleting
	}
}
