// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"fmt"

	"github.com/samber/lo"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// fixTimes sets the times of a resource and its Machines to now if they are invalid or in the
// future, and reports whether there were any: their events trigger the next reconcile. A user has
// edited them, or the previous leader had another clock. Waits would be longer by the difference,
// or would never end.
func (r *Reconciler) fixTimes(ctx context.Context, snap *snapshot.Snapshot) (bool, error) {
	var errs []error
	corrected := false
	fix := func(object client.Object, keys []string) {
		wrong := timestamp.Corrections(object.GetAnnotations(), keys, snap.Now)
		if len(wrong) == 0 {
			return
		}
		corrected = true
		changed := object.DeepCopyObject().(client.Object)
		changed.SetAnnotations(lo.Assign(object.GetAnnotations(), wrong))
		err := r.clusters.Management.GetClient().Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
		if err = client.IgnoreNotFound(err); err != nil {
			errs = append(errs, fmt.Errorf("setting the times of %T %s to now: %w", object, client.ObjectKeyFromObject(object), err))
		}
	}
	if snap.Resource != nil {
		fix(snap.Resource.API(), scalable.Timestamps)
	}
	for _, machine := range snap.Machines {
		fix(machine, lifecycle.Timestamps)
	}
	return corrected, errors.Join(errs...)
}
