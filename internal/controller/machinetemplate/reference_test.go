// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

// What is not allowed has a reason of its own, also within another error. The kind of anything else cannot be used.
func TestReasonOf(t *testing.T) {
	refused := tenancy.NotAllowed{Reason: v1alpha1.ReasonBaseTemplateNotAllowed}
	for name, tc := range map[string]struct {
		problem error
		want    string
	}{
		"not allowed":                     {problem: refused, want: v1alpha1.ReasonBaseTemplateNotAllowed},
		"not allowed, in another error":   {problem: fmt.Errorf("base: %w", refused), want: v1alpha1.ReasonBaseTemplateNotAllowed},
		"not allowed, among other errors": {problem: errors.Join(errors.New("other"), refused), want: v1alpha1.ReasonBaseTemplateNotAllowed},
		"another problem":                 {problem: errors.New("no template"), want: v1alpha1.ReasonReferenceKindUnusable},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reasonOf(tc.problem); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
