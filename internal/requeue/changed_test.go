// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Only the errors after which an event follows are those of a change.
func TestIsChanged(t *testing.T) {
	resource := schema.GroupResource{}
	for name, tc := range map[string]struct {
		err     error
		changed bool
	}{
		"none":                 {},
		"a conflict":           {err: fmt.Errorf("patching: %w", apierrors.NewConflict(resource, "x", errors.New("changed"))), changed: true},
		"it no longer exists":  {err: fmt.Errorf("patching: %w", apierrors.NewNotFound(resource, "x")), changed: true},
		"it exists already":    {err: apierrors.NewAlreadyExists(resource, "x")},
		"the API server fails": {err: apierrors.NewInternalError(errors.New("x"))},
		"another error":        {err: errors.New("x")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsChanged(tc.err); got != tc.changed {
				t.Errorf("got %t, want %t", got, tc.changed)
			}
		})
	}
}
