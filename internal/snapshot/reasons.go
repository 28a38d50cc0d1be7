// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

const (
	// LimitIsReached keeps a claim without a Machine.
	LimitIsReached planner.Reason = "the template, the offering or its reservation has no Machine left within its limit"
	// ClusterIsDeleting keeps replicas from being raised.
	ClusterIsDeleting planner.Reason = "the Cluster is being deleted, and no Machines are requested for it"
	// ControlledByOthers keeps everything as it is.
	ControlledByOthers planner.Reason = "Cluster API rolls out the resource, or another controller sets its replicas"
)

// addReasons adds to those of the plan what the planner does not know.
func (s *Snapshot) addReasons() {
	if s.Plan.Reasons == nil {
		s.Plan.Reasons = map[string]planner.Reason{}
	}
	for i := range s.Claims {
		if claim := &s.Claims[i]; s.exceeding.Has(claim.UID) && NeedsMachine(claim) {
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
