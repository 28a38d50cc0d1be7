// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

func TestOf(t *testing.T) {
	template := func(set func(*v1alpha1.KarpenterMachineTemplate)) *v1alpha1.KarpenterMachineTemplate {
		template := &v1alpha1.KarpenterMachineTemplate{}
		set(template)
		return template
	}
	own := func(template *v1alpha1.KarpenterMachineTemplate) {
		template.Spec.LaunchTimeoutSeconds = new(int32(3600))
		template.Spec.SpareTTLSeconds = new(int32(60))
		template.Spec.ScalableResource.EmptyTTLSeconds = new(int32(1))
	}
	for name, tc := range map[string]struct {
		template *v1alpha1.KarpenterMachineTemplate
		want     Settings
	}{
		"defaults": {
			template: template(func(*v1alpha1.KarpenterMachineTemplate) {}),
			want:     Settings{LaunchTimeout: v1alpha1.DefaultLaunchTimeout, SpareTTL: v1alpha1.DefaultSpareTTL, EmptyTTL: v1alpha1.DefaultEmptyTTL},
		},
		"its own": {template: template(own), want: Settings{LaunchTimeout: time.Hour, SpareTTL: time.Minute, EmptyTTL: time.Second}},
		"nothing is kept": {
			template: template(func(template *v1alpha1.KarpenterMachineTemplate) {
				template.Spec.SpareTTLSeconds, template.Spec.ScalableResource.EmptyTTLSeconds = new(int32(0)), new(int32(0))
			}),
			want: Settings{LaunchTimeout: v1alpha1.DefaultLaunchTimeout},
		},
		"a year": {
			template: template(func(template *v1alpha1.KarpenterMachineTemplate) {
				template.Spec.LaunchTimeoutSeconds = new(int32(31536000))
			}),
			want: Settings{LaunchTimeout: 365 * 24 * time.Hour, SpareTTL: v1alpha1.DefaultSpareTTL, EmptyTTL: v1alpha1.DefaultEmptyTTL},
		},
		"it is being deleted": {
			template: template(func(template *v1alpha1.KarpenterMachineTemplate) {
				own(template)
				template.DeletionTimestamp = new(metav1.Now())
			}),
			want: Settings{LaunchTimeout: time.Hour},
		},
		"it does not exist": {want: Settings{LaunchTimeout: v1alpha1.DefaultLaunchTimeout}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Of(tc.template)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
