// SPDX-License-Identifier: Apache-2.0

package requeue

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// IsChanged reports whether a write failed because its object was changed or deleted since it
// was read. The event of that change triggers the next reconcile, unless a predicate drops it: then
// see AfterConflict.
func IsChanged(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }
