// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
)

func TestAfterConflict(t *testing.T) {
	conflict := fmt.Errorf("patching: %w", apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")))
	failed := errors.New("failed")
	for name, tc := range map[string]struct {
		again   time.Duration
		err     error
		want    time.Duration
		wantErr bool
	}{
		"no error":                         {again: time.Minute, want: time.Minute},
		"a conflict":                       {err: conflict, want: conflictRetry},
		"a conflict, and a later time":     {again: time.Minute, err: conflict, want: conflictRetry},
		"a conflict, and an earlier time":  {again: time.Millisecond, err: conflict, want: time.Millisecond},
		"several conflicts":                {err: errors.Join(conflict, errors.Join(nil, conflict)), want: conflictRetry},
		"another error":                    {err: failed, wantErr: true},
		"a conflict and another error":     {err: errors.Join(conflict, errors.Join(conflict, failed)), wantErr: true},
		"a write to what no longer exists": {err: errors.Join(conflict, precondition.Conflict(schema.GroupResource{}, &corev1.Node{}, "x", apierrors.NewNotFound(schema.GroupResource{}, "x"))), want: conflictRetry},
		"an object that does not exist":    {err: apierrors.NewNotFound(schema.GroupResource{}, "x"), wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := AfterConflict(reconcile.Result{RequeueAfter: tc.again}, tc.err)
			if result.RequeueAfter != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("got %s and error %v, want %s and an error: %t", result.RequeueAfter, err, tc.want, tc.wantErr)
			}
		})
	}
}
