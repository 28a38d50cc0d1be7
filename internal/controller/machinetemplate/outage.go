// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

// followConnections enqueues all templates when a cluster cannot be reached, and when it can be reached
// again. No watch shows either.
func (r *Reconciler) followConnections(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	for _, to := range []*connection.Connection{r.clusters.ToWorkload, r.clusters.ToManagement} {
		if to == nil {
			continue
		}
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-to.Changed():
				}
				for _, name := range r.templates.All(ctx, nil) {
					queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
				}
			}
		}()
	}
	return nil
}
