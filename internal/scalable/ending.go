// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/link"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// needsMachine reports whether a claim should get a Machine if it has none: not over a
// limit, and neither in a Cluster that is being deleted nor of a resource that is left alone.
func (s *Snapshot) needsMachine(claim *karpv1.NodeClaim) bool {
	return NeedsMachine(claim) && !s.exceeding.Has(claim.UID) && !s.ClusterDeleting && !s.Suspended
}

// EndsWithoutMachine reports whether a claim ends without a Machine: it has none, and its Cluster
// is being deleted, so that it never gets one.
func (s *Snapshot) EndsWithoutMachine(claim *karpv1.NodeClaim) bool {
	return s.ClusterDeleting && NeedsMachine(claim) && s.Plan.Served[claim.UID] == ""
}

// decide makes the plan. While the Cluster is being deleted, replicas are never raised.
// Nothing is planned for a resource that is left alone.
func (s *Snapshot) decide() {
	state := s.state()
	if s.Suspended {
		s.Plan = link.Plan{Replicas: state.Replicas}
		return
	}
	s.Plan = link.Decide(state)
	if s.ClusterDeleting {
		s.Plan.Replicas = min(s.Plan.Replicas, state.Replicas)
	}
}

// ClusterEnds reports whether the served Cluster is being deleted or does not exist. It
// reads from the API server: Machines that are asked for because a cache lags behind
// would be created against Cluster API's own deletion.
func ClusterEnds(ctx context.Context, clusters *operator.Clusters) (bool, error) {
	cluster := &clusterv1.Cluster{}
	if err := clusters.Management.GetAPIReader().Get(ctx, clusters.Cluster, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("getting Cluster %s: %w", clusters.Cluster, err)
	}
	return !cluster.DeletionTimestamp.IsZero(), nil
}
