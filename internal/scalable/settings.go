// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Settings are a template's times, with their defaults.
type Settings struct {
	// LaunchTimeout is how long a Machine may take to get a provider ID.
	LaunchTimeout time.Duration
	// SpareTTL is how long a Machine without a claim is kept.
	SpareTTL time.Duration
	// EmptyTTL is how long a scalable resource without Machines is kept.
	EmptyTTL time.Duration
}

// SettingsOf returns the settings of a template. Of one that is gone nothing is
// kept, for no claim will come that could use it.
func SettingsOf(template *v1alpha1.KarpenterMachineTemplate) Settings {
	if template == nil {
		return Settings{LaunchTimeout: v1alpha1.DefaultLaunchTimeout}
	}
	or := func(duration *metav1.Duration, otherwise time.Duration) time.Duration {
		return lo.FromPtrOr(duration, metav1.Duration{Duration: otherwise}).Duration
	}
	return Settings{
		LaunchTimeout: or(template.Spec.LaunchTimeout, v1alpha1.DefaultLaunchTimeout),
		SpareTTL:      or(template.Spec.SpareTTL, v1alpha1.DefaultSpareTTL),
		EmptyTTL:      or(template.Spec.ScalableResource.EmptyTTL, v1alpha1.DefaultEmptyTTL),
	}
}

// GetTemplate returns a template by name; nil if there is none.
func GetTemplate(ctx context.Context, workload client.Reader, name string) (*v1alpha1.KarpenterMachineTemplate, error) {
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := workload.Get(ctx, types.NamespacedName{Name: name}, template); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("getting KarpenterMachineTemplate %s: %w", name, err)
	}
	return template, nil
}
