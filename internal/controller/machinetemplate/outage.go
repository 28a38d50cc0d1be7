// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karpenter-capi/karpenter-capi/internal/connection"
)

// connections are sources of all templates, when a cluster cannot be reached, and when it can be reached again. No watch
// shows either.
func (r *Reconciler) connections() []source.Source {
	var sources []source.Source
	for _, to := range []*connection.Connection{r.clusters.ToWorkload, r.clusters.ToManagement} {
		if to != nil {
			sources = append(sources, source.Channel(to.Changed(), handler.TypedEnqueueRequestsFromMapFunc(r.all)))
		}
	}
	return sources
}

// all returns the requests of all templates.
func (r *Reconciler) all(ctx context.Context, _ struct{}) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range r.templates.All(ctx, nil) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return requests
}
