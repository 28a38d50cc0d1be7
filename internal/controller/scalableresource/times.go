// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samber/lo"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// skew is by how much the clocks of two operators may differ.
const skew = 10 * time.Second

// times are the annotations from which on something is waited for. The one of empty
// resources is mended where it is set.
var times = []string{v1alpha1.MarkedForDeletionAtAnnotation, v1alpha1.SpareSinceAnnotation, v1alpha1.ReplicasSetAtAnnotation, v1alpha1.ReplicasLoweredAtAnnotation}

// fixTimes sets times of a resource and its Machines to now that lie ahead, or are none.
// Somebody has edited them, or the operator that led before had another clock; what is
// waited for would take longer by as much, or for ever. It returns whether there were
// any: their events bring the next reconcile.
func (r *Reconciler) fixTimes(ctx context.Context, snap *scalable.Snapshot) (bool, error) {
	var objects []client.Object
	if snap.Resource != nil {
		objects = append(objects, snap.Resource.API())
	}
	for _, machine := range snap.Machines {
		objects = append(objects, machine)
	}
	var errs []error
	mended := false
	for _, object := range objects {
		wrong := wrongTimes(object.GetAnnotations(), snap.Now)
		if len(wrong) == 0 {
			continue
		}
		mended = true
		changed := object.DeepCopyObject().(client.Object)
		changed.SetAnnotations(lo.Assign(object.GetAnnotations(), wrong))
		err := r.clusters.Management.GetClient().Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
		if err = ignoreConflict(client.IgnoreNotFound(err)); err != nil {
			errs = append(errs, fmt.Errorf("setting the times of %T %s to now: %w", object, client.ObjectKeyFromObject(object), err))
		}
	}
	return mended, errors.Join(errs...)
}

// wrongTimes returns those of the annotations that are to be changed, as they are to be.
func wrongTimes(annotations map[string]string, now time.Time) map[string]string {
	wrong := map[string]string{}
	for _, key := range times {
		value, ok := annotations[key]
		if since, err := time.Parse(time.RFC3339, value); ok && (err != nil || since.After(now.Add(skew))) {
			wrong[key] = scalable.Timestamp(now)
		}
	}
	return wrong
}
