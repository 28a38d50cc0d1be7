// SPDX-License-Identifier: Apache-2.0

// Package settings has the durations of a template, with their defaults.
package settings

import (
	"time"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Settings are the durations of a template.
type Settings struct {
	// LaunchTimeout is how long a Machine may take to get a provider ID.
	LaunchTimeout time.Duration
	// SpareTTL is how long a Machine without a claim is kept.
	SpareTTL time.Duration
	// EmptyTTL is how long a scalable resource without Machines is kept.
	EmptyTTL time.Duration
}

// Of returns the settings of a template. If the template is being deleted, or is nil because it
// no longer exists, nothing is kept, since no later claim could use it.
func Of(template *v1alpha1.KarpenterMachineTemplate) Settings {
	if template == nil {
		return Settings{LaunchTimeout: v1alpha1.DefaultLaunchTimeout}
	}
	or := func(seconds *int32, otherwise time.Duration) time.Duration {
		if seconds == nil {
			return otherwise
		}
		return time.Duration(*seconds) * time.Second
	}
	settings := Settings{
		LaunchTimeout: or(template.Spec.LaunchTimeoutSeconds, v1alpha1.DefaultLaunchTimeout),
		SpareTTL:      or(template.Spec.SpareTTLSeconds, v1alpha1.DefaultSpareTTL),
		EmptyTTL:      or(template.Spec.ScalableResource.EmptyTTLSeconds, v1alpha1.DefaultEmptyTTL),
	}
	if !template.DeletionTimestamp.IsZero() {
		settings.SpareTTL, settings.EmptyTTL = 0, 0
	}
	return settings
}
