// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// moveWaiting gives the claims that wait for a resource, for which Cluster API creates no Machines, the
// resource that their offering has now, if that is another: Cluster API refuses to create them, or the
// resource or its MachineSet is being deleted. After an upgrade of the control plane, Cluster API may never
// again create Machines of the version before.
func (r *Reconciler) moveWaiting(ctx context.Context, snap *decided) error {
	if snap.Template == nil || scalable.Adopted(snap.Resource) || snap.State.Stall.Reason != v1alpha1.ReasonBlocked && !snap.Ending {
		return nil
	}
	// All claims of a resource have its offering.
	launch, err := generate.LaunchOf(ctx, r.clusters, r.catalog, snap.Template, scalable.OfferingOf(snap.Resource))
	if errors.As(err, &generate.UnlaunchableError{}) || errors.As(err, &generate.PendingError{}) || catalog.IsUndiscovered(err) {
		return nil // they wait until Cluster API creates Machines, or the template offers something
	}
	if err != nil || launch.Resource == snap.Name {
		return err
	}
	var errs []error
	for i := range snap.Claims {
		if claim := &snap.Claims[i]; snap.Plan.Waiting.Has(claim.UID) {
			errs = append(errs, r.move(ctx, claim, launch))
		}
	}
	return errors.Join(errs...)
}
