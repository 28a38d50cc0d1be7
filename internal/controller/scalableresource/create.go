// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// ensureResource creates the scalable resource that claims wait for. If the template has changed since
// Karpenter launched a claim, the resource that it names is never created. The claim then gets the
// resource that its offering has now. If the template no longer offers that, the claim is deleted,
// so that Karpenter creates another.
//
// It returns the time until the next attempt if the resource could not be created.
func (r *Reconciler) ensureResource(ctx context.Context, snap *decided) (time.Duration, error) {
	var errs []error
	for i := range snap.Claims {
		claim := &snap.Claims[i]
		if !snap.Plan.Waiting.Has(claim.UID) {
			continue
		}
		launch, err := generate.LaunchOfClaim(ctx, r.clusters, r.catalog, claim)
		switch {
		case errors.As(err, &generate.PendingError{}):
			// It waits: a condition of the template reports it, and an event of the MachineDeployment follows.
		case err != nil:
			errs = append(errs, r.giveUp(ctx, claim, err))
		case launch.Resource == snap.Name && launch.Generated == nil:
			errs = append(errs, fmt.Errorf("MachineDeployment %s, from which NodeClaim %s should get its Machine, does not exist: the operator tries again", snap.Name, claim.Name))
		case launch.Resource != snap.Name:
			errs = append(errs, r.move(ctx, claim, launch))
		default:
			// All waiting claims of this resource are counted in its replicas.
			snap.scale(launch.Generated.Resource)
			if wait := r.spacing.MoreExpected(snap.Name); wait > 0 {
				return wait, errors.Join(errs...)
			}
			err := r.createResource(ctx, launch.Generated)
			if err == nil {
				return 0, errors.Join(errs...)
			}
			r.recorder.Publish(notGenerated(claim, launch.Generated.Resource, err))
			log.FromContext(ctx).Error(err, "cannot create scalable resource")
			if isRejection(err) {
				errs = append(errs, r.rejectAll(ctx, snap, err))
			}
			return createAgainAfter, errors.Join(errs...)
		}
	}
	return 0, errors.Join(errs...)
}

// createAgainAfter is the time until the operator tries again to create a scalable resource. No
// event shows that a webhook answers again, or accepts what it rejected.
const createAgainAfter = 10 * time.Second

// isRejection reports whether an error shows that the API server rejects the object, or that another
// owner has an object of its name. Other errors, such as that of a webhook that could not be
// called, are no evidence against an offering.
func isRejection(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsAlreadyExists(err)
}

// rejectAll writes on all claims that wait for a resource why it cannot be created or scaled.
func (r *Reconciler) rejectAll(ctx context.Context, snap *decided, reason error) error {
	var errs []error
	for i := range snap.Claims {
		if claim := &snap.Claims[i]; snap.Plan.Waiting.Has(claim.UID) {
			errs = append(errs, nodeclaims.Reject(ctx, r.clusters.Workload.GetClient(), claim, reason))
		}
	}
	return errors.Join(errs...)
}

// createResource creates a scalable resource. It creates the objects that the resource refers to first,
// because Cluster API cannot use the resource without them. It creates nothing in a Cluster that
// is paused or being deleted.
func (r *Reconciler) createResource(ctx context.Context, generated *generate.Generated) error {
	if inactive, err := r.clusters.Inactive(ctx); err != nil || inactive {
		return err // the event of the Cluster triggers the next reconcile
	}
	if err := r.createObjects(ctx, generated.Objects); err != nil {
		return err
	}
	resource := generated.Resource
	// If this operator has created it, the cache is behind: its event triggers the next reconcile.
	if created, err := scalable.Create(ctx, r.clusters, resource.API()); err != nil || !created {
		return err
	}
	r.memory.of(resource.GetName()).pace.note(r.clock.Now(), resource.Replicas())
	log.FromContext(ctx).Info("created scalable resource", "kind", resource.Kind().Name(), "resource", resource.Key(),
		"offering", scalable.OfferingOf(resource).String(), "replicas", resource.Replicas())
	return nil
}

// move writes the name of another scalable resource on a claim.
func (r *Reconciler) move(ctx context.Context, claim *karpv1.NodeClaim, to *generate.Launch) error {
	return nodeclaims.Move(ctx, r.clusters.Workload.GetClient(), claim, to.Annotate(claim.Annotations))
}

// giveUp deletes a claim that cannot get a Machine, because its template does not have its offering any more, so that
// Karpenter creates another.
func (r *Reconciler) giveUp(ctx context.Context, claim *karpv1.NodeClaim, reason error) error {
	if !errors.As(reason, &generate.UnlaunchableError{}) {
		return reason
	}
	r.recorder.Publish(offeringRemoved(claim, reason))
	return nodeclaims.Delete(ctx, r.clusters.Workload.GetClient(), claim, reason.Error())
}

// createObjects creates the objects that a scalable resource refers to, unless they exist. The
// controller generatedcopy sets the owners of these objects, and deletes them.
func (r *Reconciler) createObjects(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		created, err := scalable.Create(ctx, r.clusters, object, client.FieldValidation("Strict"))
		if err != nil {
			return err
		}
		if created {
			log.FromContext(ctx).Info("created object", "kind", object.GetKind(), "object", client.ObjectKeyFromObject(object))
		}
	}
	return nil
}
