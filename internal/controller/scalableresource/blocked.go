// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"

	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// moveBlocked gives the claims that wait for a resource, for which Cluster API refuses to create
// Machines, the resource that their offering has now, if that is another. After an upgrade of the
// control plane, Cluster API may never again create Machines of the version before.
func (r *Reconciler) moveBlocked(ctx context.Context, snap *snapshot.Snapshot) error {
	if !snap.Blocked() {
		return nil
	}
	var errs []error
	for i := range snap.Claims {
		claim := &snap.Claims[i]
		if !snap.Waits(claim) {
			continue
		}
		launch, err := generate.LaunchOfClaim(ctx, r.clusters, r.catalog, claim)
		switch {
		case errors.As(err, &generate.UnlaunchableError{}):
			// It waits until Cluster API creates its Machine, or until the template offers something.
		case err != nil:
			errs = append(errs, err)
		case launch.Resource != snap.Name:
			errs = append(errs, r.setResource(ctx, claim, launch))
		}
	}
	return errors.Join(errs...)
}
