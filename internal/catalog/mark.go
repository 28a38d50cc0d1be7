// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"time"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

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
