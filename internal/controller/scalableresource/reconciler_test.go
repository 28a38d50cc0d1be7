// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/link"
)

// newReconciler returns the reconciler of a process that has just started. No Pod waits for a claim.
func newReconciler(clusters *clients.Clusters, known *catalog.Catalog, recorder events.Recorder, clock clock.PassiveClock) *Reconciler {
	return NewReconciler(clusters, known, link.NewReconciler(clusters, recorder), recorder, clock,
		func(string) []types.NamespacedName { return nil })
}
