// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"slices"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// memory is what is known of a template's offerings but not in its status, because the
// status has no room for it, could not be written, or is written later.
type memory struct {
	// uid is the UID of the template, because another one can have its name later.
	uid types.UID
	// generation and from, which is FromHash of the template, are those that were examined.
	// accepted are the valid offerings; nil before that.
	generation int64
	from       string
	accepted   sets.Set[Key]
	// usage is how much of the limits is used; nil before it was counted. The status has it
	// up to some seconds later.
	usage *counted
	// marks are unavailable offerings that could not be written. unwritable are those
	// that could not be written a second time.
	marks      []v1alpha1.UnavailableOffering
	unwritable sets.Set[Key]
}

// counted is what NodeClaims use, as the status reports it.
type counted struct {
	nodeClaims int32
	limited    []v1alpha1.LimitedOffering
	// usedUp are the offerings of which nothing is left that capacityFrom counts.
	usedUp []Key
}

// SetAccepted sets the valid offerings of a template in its current generation. All others
// are closed. The status only counts them, because it has no room for a list of thousands.
func (c *Catalog) SetAccepted(template *v1alpha1.KarpenterMachineTemplate, accepted sets.Set[Key]) {
	e := c.lock(template)
	defer e.mu.Unlock()
	known := e.memoryOf(template)
	if e.acceptedOf(template) != nil && known.accepted.Equal(accepted) {
		return
	}
	known.generation, known.from, known.accepted = template.Generation, template.FromHash(), accepted
	e.resourceVersion = "" // offerings can be closed now that were open before
}

// SetUsage sets how much of a template's limits is used. Until then, it is what the status reports.
func (c *Catalog) SetUsage(template *v1alpha1.KarpenterMachineTemplate, usage Usage) {
	e := c.lock(template)
	defer e.mu.Unlock()
	now := counted{usage.Total(), usage.Status(), usage.usedUp()}
	known := e.usageOf(template)
	if known.nodeClaims != now.nodeClaims || !slices.Equal(known.limited, now.limited) || !slices.Equal(known.usedUp, now.usedUp) {
		e.resourceVersion = "" // offerings can be at their limit now, or no longer be
	}
	if !slices.Equal(known.usedUp, now.usedUp) {
		c.inventory.Notify() // other templates can share what is counted
	}
	e.memoryOf(template).usage = &now
}

// usageOf returns how much of the limits is used, as far as it is known.
func (e *entry) usageOf(template *v1alpha1.KarpenterMachineTemplate) counted {
	if usage := e.memoryOf(template).usage; usage != nil {
		return *usage
	}
	usedUp := lo.FilterMap(template.Status.LimitedOfferings, func(o v1alpha1.LimitedOffering, _ int) (Key, bool) {
		return KeyOfLimited(o), len(e.limits.pools[KeyOfLimited(o)]) > 0 && o.NodeClaims >= o.Limit
	})
	return counted{template.Status.NodeClaims, template.Status.LimitedOfferings, usedUp}
}

// Examined reports whether the valid offerings of a template are known for its current
// generation: this process has examined them, or the status shows that all of them were
// accepted. Before that, nothing can be launched. Of a resolved template that is Pending, nothing is known.
func (c *Catalog) Examined(template *v1alpha1.KarpenterMachineTemplate) bool {
	if pattern.Pending(template) {
		return false
	}
	e := c.lock(template)
	defer e.mu.Unlock()
	return e.acceptedOf(template) != nil || template.Status.AcceptedHash != ""
}

// Accepted reports whether an offering of a template is valid, as far as that is known.
func (c *Catalog) Accepted(template *v1alpha1.KarpenterMachineTemplate, key Key) bool {
	e := c.lock(template)
	defer e.mu.Unlock()
	accepted := e.acceptedOf(template)
	return accepted == nil || accepted.Has(key)
}

// Mark marks offerings as unavailable in the status of a template, with one write, and returns the template
// with the marks. If the template has changed or no longer exists, nothing is marked, and the error is one for
// which requeue.IsChanged is true: other offerings can fail at the same time. If the status cannot be written,
// this process remembers the marks.
func (c *Catalog) Mark(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, now time.Time, marks ...v1alpha1.UnavailableOffering) (*v1alpha1.KarpenterMachineTemplate, error) {
	marked := template.DeepCopy()
	for _, mark := range marks {
		marked.Status.UnavailableOfferings = MarkUnavailable(marked.Status.UnavailableOfferings, mark, now)
	}
	err := precondition.WriteStatus(ctx, c.clusters.Workload.GetClient(), template, marked, "marking offerings as unavailable in")
	if err != nil && !requeue.IsChanged(err) {
		for _, mark := range marks {
			c.Remember(template, mark, now)
		}
	}
	return marked, err
}

// Remember makes an offering that failed unavailable, like MarkUnavailable, if the template's
// status cannot be written. The next write of the status contains the mark.
func (c *Catalog) Remember(template *v1alpha1.KarpenterMachineTemplate, failed v1alpha1.UnavailableOffering, now time.Time) {
	e := c.lock(template)
	defer e.mu.Unlock()
	known, key := e.memoryOf(template), Key{failed.InstanceType, failed.Zone, failed.CapacityType}
	if isMarked(known.marks, key, now) {
		known.unwritable = known.unwritable.Union(sets.New(key))
		return
	}
	known.unwritable = known.unwritable.Difference(sets.New(key))
	same := func(o v1alpha1.UnavailableOffering, _ int) bool { return sameOffering(o, failed) }
	marked := lo.Filter(MarkUnavailable(e.unavailable(template, now), failed, now), same)
	known.marks = append(lo.Reject(known.marks, same), marked...)
	e.resourceVersion = ""
}

// IsMarked reports whether it is recorded that an offering is unavailable because it has failed: in the template's
// status or, after two failed writes of the status, in memory.
func (c *Catalog) IsMarked(template *v1alpha1.KarpenterMachineTemplate, key Key, now time.Time) bool {
	e := c.lock(template)
	defer e.mu.Unlock()
	return isMarked(template.Status.UnavailableOfferings, key, now) ||
		isMarked(e.memoryOf(template).marks, key, now) && e.memory.unwritable.Has(key)
}

// Unavailable returns the offerings of a template that failed: those in its status, and
// those that could not be written there. It includes offerings that can be chosen again,
// as long as their failure counts.
func (c *Catalog) Unavailable(template *v1alpha1.KarpenterMachineTemplate, now time.Time) []v1alpha1.UnavailableOffering {
	e := c.lock(template)
	defer e.mu.Unlock()
	return e.unavailable(template, now)
}

func (e *entry) memoryOf(template *v1alpha1.KarpenterMachineTemplate) *memory {
	if e.memory.uid != template.UID {
		e.memory = memory{uid: template.UID}
	}
	return &e.memory
}

// acceptedOf returns the valid offerings; nil if they are not known.
func (e *entry) acceptedOf(template *v1alpha1.KarpenterMachineTemplate) sets.Set[Key] {
	if known := e.memoryOf(template); known.generation == template.Generation && known.from == template.FromHash() {
		return known.accepted
	}
	return nil
}

func (e *entry) unavailable(template *v1alpha1.KarpenterMachineTemplate, now time.Time) []v1alpha1.UnavailableOffering {
	known, written := e.memoryOf(template), template.Status.UnavailableOfferings
	if len(known.marks) == 0 {
		return PruneUnavailable(written, now)
	}
	known.marks = lo.Reject(PruneUnavailable(known.marks, now), func(mark v1alpha1.UnavailableOffering, _ int) bool {
		return lo.ContainsBy(written, func(o v1alpha1.UnavailableOffering) bool {
			return sameOffering(o, mark) && !o.Until.Before(&mark.Until)
		})
	})
	overtaken := func(o v1alpha1.UnavailableOffering, _ int) bool {
		return lo.ContainsBy(known.marks, func(mark v1alpha1.UnavailableOffering) bool { return sameOffering(o, mark) })
	}
	return fit(append(lo.Reject(PruneUnavailable(written, now), overtaken), known.marks...), now)
}
