// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"fmt"

	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

// deleteWithCluster deletes the claims that have no Machine while their Cluster is being
// deleted, also those without a NodePool. They never get a Machine, because the deletion of the
// Cluster cannot be undone. Nothing has failed, so no offering is marked as unavailable.
func (r *Reconciler) deleteWithCluster(ctx context.Context, snap *decided) error {
	reason := fmt.Sprintf("Cluster %s is being deleted", r.clusters.Cluster)
	var errs []error
	for claim := range snap.settled() {
		if snap.Plan.Outcomes[claim.UID].Ends {
			r.recorder.Publish(clusterDeleting(claim, reason))
			errs = append(errs, nodeclaims.Delete(ctx, r.clusters.Workload.GetClient(), claim, reason))
		}
	}
	return errors.Join(errs...)
}
