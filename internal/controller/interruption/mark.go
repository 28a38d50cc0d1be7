// SPDX-License-Identifier: Apache-2.0

package interruption

import (
	"context"
	"time"

	"github.com/samber/lo"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// mark marks the offerings of interrupted Nodes as unavailable in the status of their template. It
// returns a conflict if the template has changed. Any other failure only costs the mark: the notice is too
// short to wait for a status that cannot be written.
func (r *Reconciler) mark(ctx context.Context, name string, ofTemplate []interruptedNode) error {
	template, err := r.clusters.Template(ctx, name)
	if err != nil || template == nil {
		return err // nothing is launched with a template that does not exist
	}
	marks := r.newMarks(template, ofTemplate, r.clock.Now())
	if len(marks) == 0 {
		return nil
	}
	_, err = r.catalog.Mark(ctx, template, r.clock.Now(), marks...)
	if requeue.IsChanged(err) {
		return client.IgnoreNotFound(err)
	}
	for _, mark := range marks {
		r.recorder.Publish(offeringInterrupted(template, mark))
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "marking offerings as unavailable, which this process remembers instead", "KarpenterMachineTemplate", name)
	}
	return nil
}

// newMarks returns the marks that a template lacks: those of the offerings whose capacity was taken away.
func (r *Reconciler) newMarks(template *v1alpha1.KarpenterMachineTemplate, ofTemplate []interruptedNode, now time.Time) []v1alpha1.UnavailableOffering {
	var marks []v1alpha1.UnavailableOffering
	for _, ends := range lo.UniqBy(ofTemplate, func(n interruptedNode) catalog.Key { return catalog.KeyOf(n.claim) }) {
		offering := catalog.KeyOf(ends.claim)
		if r.catalog.IsMarked(template, offering, now) || !isTakenAway(offering) {
			continue
		}
		marks = append(marks, offering.Unavailable(v1alpha1.ReasonInterrupted, ends.reason()))
	}
	return marks
}

// isTakenAway reports whether the infrastructure interrupts instances of an offering because it needs their
// capacity. An interruption of an instance on demand is about its host, and another host has the capacity.
func isTakenAway(offering catalog.Key) bool {
	return offering.CapacityType == karpv1.CapacityTypeSpot || offering.CapacityType == karpv1.CapacityTypeReserved
}
