// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"time"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
)

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
