// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

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
func (r *Reconciler) setEmptySince(ctx context.Context, resource *clusterv1.MachineDeployment, observed *scalable.Observed) (emptiness, error) {
	if len(observed.Claims) > 0 || len(observed.Machines) > 0 {
		delete(resource.Annotations, v1alpha1.EmptySinceAnnotation)
		return emptiness{}, nil
	}
	ttl, err := r.emptyTTL(ctx, resource)
	if err != nil {
		return emptiness{}, err
	}
	since, err := time.Parse(time.RFC3339, resource.Annotations[v1alpha1.EmptySinceAnnotation])
	if err != nil { // absent, or edited by somebody
		since = r.clock.Now()
		resource.Annotations = lo.Assign(resource.Annotations, map[string]string{v1alpha1.EmptySinceAnnotation: since.UTC().Format(time.RFC3339)})
	}
	left := ttl - r.clock.Since(since)
	return emptiness{expired: left <= 0, expiresIn: left}, nil
}

// emptyTTL returns for how long an empty resource is kept; not at all if its
// template is gone.
func (r *Reconciler) emptyTTL(ctx context.Context, resource *clusterv1.MachineDeployment) (time.Duration, error) {
	template := &v1alpha1.KarpenterMachineTemplate{}
	name := resource.Labels[v1alpha1.TemplateLabel]
	if err := r.clusters.Workload.GetClient().Get(ctx, types.NamespacedName{Name: name}, template); err != nil {
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		return 0, fmt.Errorf("getting KarpenterMachineTemplate %s: %w", name, err)
	}
	if ttl := template.Spec.ScalableResource.EmptyTTL; ttl != nil {
		return ttl.Duration, nil
	}
	return v1alpha1.DefaultEmptyTTL, nil
}
