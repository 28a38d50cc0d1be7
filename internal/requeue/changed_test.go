// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Only the errors after which an event follows are ignored.
func TestIgnoreChanged(t *testing.T) {
	resource := schema.GroupResource{}
	for name, tc := range map[string]struct {
		err     error
		ignored bool
	}{
		"a conflict":           {err: fmt.Errorf("patching: %w", apierrors.NewConflict(resource, "x", errors.New("changed"))), ignored: true},
		"it no longer exists":  {err: fmt.Errorf("patching: %w", apierrors.NewNotFound(resource, "x")), ignored: true},
		"it exists already":    {err: apierrors.NewAlreadyExists(resource, "x")},
		"the API server fails": {err: apierrors.NewInternalError(errors.New("x"))},
		"another error":        {err: errors.New("x")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IgnoreChanged(tc.err); (got == nil) != tc.ignored || got != nil && !errors.Is(got, tc.err) {
				t.Errorf("got %v, want it ignored: %t", got, tc.ignored)
			}
		})
	}
	if IsChanged(nil) {
		t.Error("no error is that of an object that has changed")
	}
}
