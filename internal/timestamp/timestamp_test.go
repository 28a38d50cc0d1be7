// SPDX-License-Identifier: Apache-2.0

package timestamp

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

func TestCorrections(t *testing.T) {
	keys := []string{v1alpha1.MarkedForDeletionAtAnnotation, v1alpha1.SpareSinceAnnotation, v1alpha1.ReplicasSetAtAnnotation}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	const nowText = "2026-01-01T12:00:00Z"
	for name, tc := range map[string]struct {
		annotations, want map[string]string
	}{
		"none":                     {},
		"other annotations":        {annotations: map[string]string{"a": "2099-01-01T00:00:00Z", v1alpha1.NodeClaimAnnotation: "x"}},
		"past":                     {annotations: map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: "2026-01-01T11:00:00Z"}},
		"now":                      {annotations: map[string]string{v1alpha1.SpareSinceAnnotation: nowText}},
		"10 seconds in the future": {annotations: map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: "2026-01-01T12:00:10Z"}},
		"11 seconds in the future": {annotations: map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: "2026-01-01T12:00:11Z"}, want: map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: nowText}},
		"in another time zone":     {annotations: map[string]string{v1alpha1.SpareSinceAnnotation: "2026-01-01T13:00:05+01:00"}},
		"invalid":                  {annotations: map[string]string{v1alpha1.ReplicasSetAtAnnotation: "yesterday"}, want: map[string]string{v1alpha1.ReplicasSetAtAnnotation: nowText}},
		"empty":                    {annotations: map[string]string{v1alpha1.SpareSinceAnnotation: ""}, want: map[string]string{v1alpha1.SpareSinceAnnotation: nowText}},
		"several": {
			annotations: map[string]string{v1alpha1.SpareSinceAnnotation: "2099-01-01T00:00:00Z", v1alpha1.MarkedForDeletionAtAnnotation: "2026-01-01T11:00:00Z"},
			want:        map[string]string{v1alpha1.SpareSinceAnnotation: nowText},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Corrections(tc.annotations, keys, now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for key, value := range got {
				if again := Corrections(map[string]string{key: value}, keys, now); len(again) > 0 {
					t.Errorf("a corrected time is corrected again: %v", again)
				}
			}
		})
	}
}
