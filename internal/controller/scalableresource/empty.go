// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"time"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// emptiness is what follows from a resource being empty.
type emptiness struct {
	expired   bool
	expiresIn time.Duration // zero if the resource is not empty
}

// setEmptySince sets or removes the annotation that says since when a resource
// has had neither claims nor Machines. It is on the object so that a restart of
// the operator does not begin anew. Replicas do not matter: those that Cluster
// API cannot make Machines for would keep the resource for ever.
func setEmptySince(resource *scalable.Resource, snap *scalable.Snapshot) emptiness {
	annotations := lo.Assign(resource.GetAnnotations())
	if scalable.Adopted(resource) || len(snap.Claims) > 0 || len(snap.Machines) > 0 {
		delete(annotations, v1alpha1.EmptySinceAnnotation)
		resource.SetAnnotations(annotations)
		return emptiness{}
	}
	since, err := time.Parse(time.RFC3339, annotations[v1alpha1.EmptySinceAnnotation])
	if err != nil || since.After(snap.Now) { // absent, or edited by somebody
		since = snap.Now
		annotations[v1alpha1.EmptySinceAnnotation] = scalable.Timestamp(since)
		resource.SetAnnotations(annotations)
	}
	left := snap.Settings.EmptyTTL - snap.Now.Sub(since)
	return emptiness{expired: left <= 0, expiresIn: left}
}
