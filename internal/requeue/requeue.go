// SPDX-License-Identifier: Apache-2.0

// Package requeue has helpers with which reconcilers decide about their next reconcile.
package requeue

import (
	"time"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
)

// IsChanged reports whether a write failed because its object was changed or deleted since it
// was read. The event of that change triggers the next reconcile, unless a predicate drops it: then
// see AfterConflict.
func IsChanged(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// conflictRetry is the time after which a reconcile is repeated after a conflict. Usually the cache has
// what another writer has changed by then.
const conflictRetry = time.Second

// AfterConflict returns the result and the error of a reconcile, unless all its errors are conflicts, or of
// writes to objects that no longer exist: then it requests the next reconcile soon instead. A controller whose
// predicates drop updates must not ignore a conflict, because the event of the write that caused it may be one
// of those.
func AfterConflict(result reconcile.Result, err error) (reconcile.Result, error) {
	if err == nil || !onlyConflicts(err) {
		return result, err
	}
	return reconcile.Result{RequeueAfter: Soonest(result.RequeueAfter, conflictRetry)}, nil
}

func onlyConflicts(err error) bool {
	if joined, is := err.(interface{ Unwrap() []error }); is {
		return lo.EveryBy(joined.Unwrap(), onlyConflicts)
	}
	return apierrors.IsConflict(err) || precondition.IsGone(err)
}

// Soonest returns the shortest of the positive durations, or zero if none is positive. A
// duration that is zero or negative is nothing to wait for.
//
// Karpenter's result.Min does the same for results, but sets their deprecated Requeue.
func Soonest(durations ...time.Duration) time.Duration {
	soonest := time.Duration(0)
	for _, d := range durations {
		if d > 0 && (soonest == 0 || d < soonest) {
			soonest = d
		}
	}
	return soonest
}
