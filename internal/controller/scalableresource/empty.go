// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"time"

	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// emptiness is whether and when an empty resource expires.
type emptiness struct {
	expired   bool
	expiresIn time.Duration // zero if the resource is not empty
}

// setEmptySince sets or removes the annotation with the time since which a resource has had neither
// claims nor Machines. It is on the object, so that a restart of the operator does not change that
// time. Replicas do not matter: if Cluster API cannot create Machines for them, the resource would
// stay forever. Claims that have no replicas yet are no reason for a write: Cluster API would work on the resource for
// that, and begin with the replicas a second later. The write of the replicas removes the annotation.
func setEmptySince(resource *scalable.Resource, snap *decided) emptiness {
	annotations := lo.Assign(resource.GetAnnotations())
	if len(snap.Claims) > 0 && len(snap.Machines) == 0 && resource.HasReplicas() && resource.Replicas() == 0 {
		return emptiness{}
	}
	if scalable.Adopted(resource) || len(snap.Claims) > 0 || len(snap.Machines) > 0 {
		delete(annotations, v1alpha1.EmptySinceAnnotation)
		resource.SetAnnotations(annotations)
		return emptiness{}
	}
	since, known := timestamp.Of(resource, v1alpha1.EmptySinceAnnotation)
	if !known || since.After(snap.State.Now) { // absent, or a user has edited it
		since = snap.State.Now
		annotations[v1alpha1.EmptySinceAnnotation] = timestamp.Format(since)
		resource.SetAnnotations(annotations)
	}
	left := snap.Settings.EmptyTTL - snap.State.Now.Sub(since)
	return emptiness{expired: left <= 0, expiresIn: left}
}
