// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// fixTimes sets the times of a resource and its Machines to now if they are invalid or in the
// future, and reports whether there were any: their events trigger the next reconcile. A user has
// edited them, or the previous leader had another clock. Waits would be longer by the difference,
// or would never end.
func (r *Reconciler) fixTimes(ctx context.Context, snap *decided) (bool, error) {
	var errs []error
	corrected := false
	if resource := snap.Resource; resource != nil {
		if wrong := timestamp.Corrections(resource.GetAnnotations(), scalable.Timestamps, snap.State.Now); len(wrong) > 0 {
			changed := resource.DeepCopy()
			changed.SetAnnotations(lo.Assign(resource.GetAnnotations(), wrong))
			corrected, errs = true, append(errs, precondition.Write(ctx, r.clusters.Management.GetClient(), resource.API(), changed.API(), "setting the times to now of"))
		}
	}
	for _, machine := range snap.Machines {
		fixed, err := lifecycle.FixTimes(ctx, r.clusters.Management.GetClient(), machine, snap.State.Now)
		corrected, errs = corrected || fixed, append(errs, err)
	}
	return corrected, errors.Join(errs...)
}
