// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/connection"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// logReasons logs at debug level, once per change, why the plan of a resource puts something off.
func (r *Reconciler) logReasons(ctx context.Context, snap *decided) {
	known := r.memory.of(snap.Name)
	before := known.reasons
	if maps.Equal(before, snap.Plan.Reasons) {
		return
	}
	known.reasons = maps.Clone(snap.Plan.Reasons)
	for _, subject := range slices.Sorted(maps.Keys(snap.Plan.Reasons)) {
		if why := snap.Plan.Reasons[subject]; why != before[subject] {
			log.FromContext(ctx).V(1).Info("waiting", "resource", snap.Name, "what", subject, "because", string(why))
		}
	}
}

// reportUnsettled reports on a MachinePool that should shrink that it waits, if disturbances of the management
// cluster follow each other. One alone, such as a start of the operator, is nothing to report.
func (r *Reconciler) reportUnsettled(snap *decided) {
	waited, cause := r.clusters.ToManagement.Unsettled()
	if snap.Resource == nil || waited < connection.Recovery || !slices.Contains(slices.Collect(maps.Values(snap.Plan.Reasons)), planner.NotSettled) {
		return
	}
	r.recorder.Publish(poolNotSettled(snap.Resource, cause, cmp.Or(r.clusters.Timings, clients.ProductionTimings()).RecoveryLimit))
}
