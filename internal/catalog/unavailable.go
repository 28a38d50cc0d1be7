// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

const (
	// minUnavailable is how long an offering is unavailable after its first failure. Each
	// further failure in a row doubles it, up to maxUnavailable.
	minUnavailable = 3 * time.Minute
	maxUnavailable = 30 * time.Minute
	// remembered is how long after that another failure counts as one in a row.
	remembered = 30 * time.Minute
	// maxUnavailableOfferings is the maximum in the CRD.
	maxUnavailableOfferings = 1000
)

// MarkUnavailable returns a template's unavailable offerings with one that failed now. It
// takes the offering, the reason and the message from failed. An offering that is already
// unavailable does not change, because machines that fail now were launched before.
func MarkUnavailable(offerings []v1alpha1.UnavailableOffering, failed v1alpha1.UnavailableOffering, now time.Time) []v1alpha1.UnavailableOffering {
	offerings = slices.Clone(offerings)
	failed.Failures, failed.Message = 1, budget.Text(failed.Message, budget.Mark)
	index := slices.IndexFunc(offerings, func(o v1alpha1.UnavailableOffering) bool { return sameOffering(o, failed) })
	if index >= 0 {
		if offerings[index].Until.After(now) {
			return offerings
		}
		if now.Before(offerings[index].Until.Add(remembered)) {
			failed.Failures = offerings[index].Failures + 1
		}
		offerings = slices.Delete(offerings, index, index+1)
	}
	failed.Until = metav1.NewTime(now.Add(pause(failed.Failures)).Truncate(time.Second))
	return fit(append(offerings, failed), now)
}

// fit returns the offerings that fit into the status, in the same order. It leaves out
// first offerings that can be chosen again, then messages, and then the offerings that
// can be chosen again soonest. It uses the given slice.
func fit(offerings []v1alpha1.UnavailableOffering, now time.Time) []v1alpha1.UnavailableOffering {
	if len(offerings) <= maxUnavailableOfferings && budget.Size(offerings) <= budget.Unavailable {
		return offerings
	}
	// Of several offerings with the same time, the last one failed last.
	latest := lo.Map(offerings, func(_ v1alpha1.UnavailableOffering, i int) int { return len(offerings) - 1 - i })
	slices.SortStableFunc(latest, func(a, b int) int { return offerings[b].Until.Compare(offerings[a].Until.Time) })
	closed, open := lo.FilterReject(latest, func(at, _ int) bool { return offerings[at].Until.After(now) })
	kept, messages, room := sets.New[int](), map[int]string{}, budget.Unavailable-2
	keep := func(at int) bool {
		if size := budget.Size(offerings[at]) + 1; size <= room && kept.Len() < maxUnavailableOfferings {
			room -= size
			kept.Insert(at)
		}
		return kept.Has(at)
	}
	for _, at := range closed {
		messages[at], offerings[at].Message = offerings[at].Message, ""
		if !keep(at) {
			break
		}
	}
	for _, at := range closed[:kept.Len()] {
		bare := budget.Size(offerings[at])
		offerings[at].Message = messages[at]
		if size := budget.Size(offerings[at]) - bare; size <= room {
			room -= size
		} else {
			offerings[at].Message = ""
		}
	}
	for _, at := range open {
		if !keep(at) {
			break
		}
	}
	return lo.Filter(offerings, func(_ v1alpha1.UnavailableOffering, i int) bool { return kept.Has(i) })
}

// pause returns how long an offering is unavailable after a number of failures.
func pause(failures int32) time.Duration {
	duration := minUnavailable
	for range failures - 1 {
		if duration *= 2; duration >= maxUnavailable {
			return maxUnavailable
		}
	}
	return duration
}

// PruneUnavailable returns the offerings whose failure still counts.
func PruneUnavailable(offerings []v1alpha1.UnavailableOffering, now time.Time) []v1alpha1.UnavailableOffering {
	return lo.Filter(offerings, func(o v1alpha1.UnavailableOffering, _ int) bool { return now.Before(o.Until.Add(remembered)) })
}

// Unavailable returns the offerings that cannot be chosen now.
func Unavailable(offerings []v1alpha1.UnavailableOffering, now time.Time) []v1alpha1.UnavailableOffering {
	return lo.Filter(offerings, func(o v1alpha1.UnavailableOffering, _ int) bool { return o.Until.After(now) })
}

// isMarked reports whether an offering is unavailable.
func isMarked(offerings []v1alpha1.UnavailableOffering, key Key, now time.Time) bool {
	wanted := key.Unavailable("", "")
	return lo.SomeBy(Unavailable(offerings, now), func(o v1alpha1.UnavailableOffering) bool { return sameOffering(o, wanted) })
}

// ChangesIn returns the time until the next offering becomes available or its failure
// stops counting; zero if there are no offerings.
func ChangesIn(offerings []v1alpha1.UnavailableOffering, now time.Time) time.Duration {
	var left []time.Duration
	for _, offering := range offerings {
		left = append(left, offering.Until.Sub(now), offering.Until.Add(remembered).Sub(now))
	}
	return requeue.Soonest(left...)
}

func sameOffering(a, b v1alpha1.UnavailableOffering) bool {
	return KeyOfMark(a) == KeyOfMark(b)
}
