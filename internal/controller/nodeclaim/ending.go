// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"errors"
	"fmt"

	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// deleteEnding deletes the claims that have no Machine while their Cluster is being
// deleted, also those without a NodePool: nobody can ever serve them, and a deletion
// cannot be taken back. Nothing has failed, so no offering is marked.
func (r *Reconciler) deleteEnding(ctx context.Context, observed *scalable.Observed) error {
	reason := fmt.Sprintf("Cluster %s is being deleted", r.clusters.Cluster)
	var errs []error
	for i := range observed.Claims {
		if claim := &observed.Claims[i]; observed.EndsWithout(claim) {
			r.recorder.Publish(clusterDeleting(claim, reason))
			errs = append(errs, r.delete(ctx, claim, reason))
		}
	}
	return errors.Join(errs...)
}
