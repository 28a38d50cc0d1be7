// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

const (
	// minUnavailable is for how long an offering is left alone that failed once;
	// each failure in a row doubles it, up to maxUnavailable.
	minUnavailable = 3 * time.Minute
	maxUnavailable = 30 * time.Minute
	// memory is for how long after that a failure counts as one in a row.
	memory = 30 * time.Minute
	// maxUnavailableOfferings and maxMessage are the CRD's bounds.
	maxUnavailableOfferings = 1000
	maxMessage              = 1024
)

// MarkUnavailable returns a template's unavailable offerings with one that failed
// now: of failed the offering, the reason and the message are taken. An offering
// that is unavailable already stays as it is: what fails meanwhile was launched
// before.
func MarkUnavailable(offerings []v1alpha1.UnavailableOffering, failed v1alpha1.UnavailableOffering, now time.Time) []v1alpha1.UnavailableOffering {
	offerings = slices.Clone(offerings)
	failed.Failures, failed.Message = 1, lo.Substring(failed.Message, 0, maxMessage)
	index := slices.IndexFunc(offerings, func(o v1alpha1.UnavailableOffering) bool { return sameOffering(o, failed) })
	if index >= 0 {
		if offerings[index].Until.After(now) {
			return offerings
		}
		if now.Before(offerings[index].Until.Add(memory)) {
			failed.Failures = offerings[index].Failures + 1
		}
		offerings = slices.Delete(offerings, index, index+1)
	}
	failed.Until = metav1.NewTime(now.Add(pause(failed.Failures)).Truncate(time.Second))
	// Should there be too many, the one that failed first is forgotten.
	return append(offerings[max(0, len(offerings)-maxUnavailableOfferings+1):], failed)
}

// pause returns for how long an offering is left alone after so many failures.
func pause(failures int32) time.Duration {
	duration := minUnavailable
	for range failures - 1 {
		if duration *= 2; duration >= maxUnavailable {
			return maxUnavailable
		}
	}
	return duration
}

// PruneUnavailable returns the offerings whose failure is not forgotten yet.
func PruneUnavailable(offerings []v1alpha1.UnavailableOffering, now time.Time) []v1alpha1.UnavailableOffering {
	return lo.Filter(offerings, func(o v1alpha1.UnavailableOffering, _ int) bool { return now.Before(o.Until.Add(memory)) })
}

// Unavailable returns the offerings that cannot be chosen now.
func Unavailable(offerings []v1alpha1.UnavailableOffering, now time.Time) []v1alpha1.UnavailableOffering {
	return lo.Filter(offerings, func(o v1alpha1.UnavailableOffering, _ int) bool { return o.Until.After(now) })
}

// UnavailableUntil returns until when an offering cannot be chosen; false if it can.
func UnavailableUntil(offerings []v1alpha1.UnavailableOffering, instanceType, zone, capacityType string, now time.Time) (time.Time, bool) {
	wanted := v1alpha1.UnavailableOffering{InstanceType: instanceType, Zone: zone, CapacityType: capacityType}
	found, ok := lo.Find(Unavailable(offerings, now), func(o v1alpha1.UnavailableOffering) bool { return sameOffering(o, wanted) })
	return found.Until.Time, ok
}

// ChangesIn returns after what time one of the offerings becomes available, or is
// forgotten; zero if there is none.
func ChangesIn(offerings []v1alpha1.UnavailableOffering, now time.Time) time.Duration {
	var left []time.Duration
	for _, offering := range offerings {
		left = append(left, offering.Until.Sub(now), offering.Until.Add(memory).Sub(now))
	}
	return requeue.Soonest(left...)
}

func sameOffering(a, b v1alpha1.UnavailableOffering) bool {
	return a.InstanceType == b.InstanceType && a.Zone == b.Zone && a.CapacityType == b.CapacityType
}
