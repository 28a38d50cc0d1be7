// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// generate makes the scalable resource that claims wait for. The template may
// have changed since Karpenter decided for it: then the resource they name can
// never be, and each claim moves to the one that its offering has now, or, if the
// template offers that no more, is deleted so that Karpenter decides anew.
//
// It returns after what time to try again, if Cluster API or the API server did not answer.
func (r *Reconciler) generate(ctx context.Context, observed *scalable.Observed) (time.Duration, error) {
	var errs []error
	for i := range observed.Claims {
		claim := &observed.Claims[i]
		if !observed.Waits(claim) {
			continue
		}
		generated, err := r.generatedFor(ctx, claim)
		switch {
		case err != nil:
			errs = append(errs, r.giveUp(ctx, claim, err))
		case generated.resource == observed.Name && generated.Resource == nil:
			errs = append(errs, fmt.Errorf("MachineDeployment %s, which NodeClaim %s is to get its Machine from, is not there: this is tried again", observed.Name, claim.Name))
		case generated.resource != observed.Name:
			errs = append(errs, r.move(ctx, claim, generated))
		default:
			// All waiting claims of this resource are counted in its replicas.
			observed.Scale(generated.Resource)
			err := r.create(ctx, generated.Generated)
			if err == nil {
				return 0, errors.Join(errs...)
			}
			r.recorder.Publish(notGenerated(claim, generated.Resource, err))
			log.FromContext(ctx).Error(err, "cannot create scalable resource")
			if isRefusal(err) {
				errs = append(errs, r.refuseAll(ctx, observed, err))
			}
			return createAgainAfter, errors.Join(errs...)
		}
	}
	return 0, errors.Join(errs...)
}

// createAgainAfter is when a scalable resource is created that could not be. No event shows
// that a webhook answers again, or accepts what it refused.
const createAgainAfter = 10 * time.Second

// isRefusal reports whether an error is an answer that refuses what was to be created, or
// another owner has an object of its name. Other errors, such as that of a webhook that could
// not be called, are no evidence against an offering.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsAlreadyExists(err)
}

// refuseAll refuses all claims that wait for a resource.
func (r *Reconciler) refuseAll(ctx context.Context, observed *scalable.Observed, reason error) error {
	var errs []error
	for i := range observed.Claims {
		if claim := &observed.Claims[i]; observed.Waits(claim) {
			errs = append(errs, r.refuse(ctx, claim, reason))
		}
	}
	return errors.Join(errs...)
}

// refuse writes on a claim why no scalable resource can be created for it, once. If that does
// not change within launchTimeout, its launch has failed (see package nodeclaim).
func (r *Reconciler) refuse(ctx context.Context, claim *karpv1.NodeClaim, reason error) error {
	changed := claim.DeepCopy()
	if scalable.Refused(claim) || !changed.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonRefused, lo.Substring(reason.Error(), 0, maxMessage)) {
		return nil
	}
	if err := r.clusters.Workload.GetClient().Status().Patch(ctx, changed, client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{})); err != nil {
		return ignoreConflict(client.IgnoreNotFound(fmt.Errorf("patching the status of NodeClaim %s: %w", claim.Name, err)))
	}
	return nil
}

// maxMessage bounds a condition's message.
const maxMessage = 1024

// made is what a claim's offering has: something that is generated or, without a
// Resource, a MachineDeployment that is adopted.
type made struct {
	*scalable.Generated
	// resource is the name of the scalable resource, and hash the template hash.
	resource, hash string
}

// generatedFor returns what a claim's offering has now. A notOffered error says that
// there is nothing.
func (r *Reconciler) generatedFor(ctx context.Context, claim *karpv1.NodeClaim) (*made, error) {
	name := lo.FromPtr(claim.Spec.NodeClassRef).Name
	template, err := scalable.GetTemplate(ctx, r.clusters.Workload.GetClient(), name)
	if err != nil {
		return nil, err
	}
	if template == nil {
		return nil, notOffered{fmt.Errorf("KarpenterMachineTemplate %s does not exist", name)}
	}
	instanceType, offering, err := r.catalog.Find(ctx, template, catalog.KeyOf(claim))
	if catalog.IsNotOffered(err) {
		return nil, notOffered{err}
	}
	if err != nil {
		return nil, err
	}
	if offering.MachineDeployment != "" {
		return &made{Generated: &scalable.Generated{}, resource: offering.MachineDeployment}, nil
	}
	generator, err := scalable.GeneratorFor(ctx, r.clusters, template)
	if err != nil {
		return nil, err
	}
	generated, err := generator.Generate(instanceType, offering)
	if errors.As(err, &scalable.UnreadError{}) {
		return nil, err
	}
	if err != nil {
		return nil, notOffered{err}
	}
	return &made{Generated: generated, resource: generated.Resource.GetName(), hash: generated.Resource.GetLabels()[v1alpha1.TemplateHashLabel]}, nil
}

// notOffered says that a claim can get no Machine.
type notOffered struct{ error }

// create makes a scalable resource, and before it the objects it refers to, without
// which Cluster API could make nothing of it.
func (r *Reconciler) create(ctx context.Context, generated *scalable.Generated) error {
	if err := r.createObjects(ctx, generated.Objects); err != nil {
		return err
	}
	resource := generated.Resource
	// If this operator has created it, the cache is behind: its event brings the next reconcile.
	if created, err := scalable.Create(ctx, r.clusters, resource.API()); err != nil || !created {
		return err
	}
	r.noteRaise(resource.GetName())
	log.FromContext(ctx).Info("created scalable resource", "kind", resource.Kind().Name(), "resource", resource.Key(),
		"offering", scalable.OfferingOf(resource).String(), "replicas", resource.Replicas())
	return nil
}

// move makes a claim name another scalable resource.
func (r *Reconciler) move(ctx context.Context, claim *karpv1.NodeClaim, to *made) error {
	changed := claim.DeepCopy()
	changed.Annotations[v1alpha1.ScalableResourceAnnotation] = to.resource
	changed.Annotations[v1alpha1.TemplateHashAnnotation] = to.hash
	if err := r.clusters.Workload.GetClient().Patch(ctx, changed, client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{})); err != nil {
		return ignoreConflict(client.IgnoreNotFound(fmt.Errorf("moving NodeClaim %s to scalable resource %s: %w", claim.Name, to.resource, err)))
	}
	log.FromContext(ctx).Info("moved NodeClaim, for its template has changed", "NodeClaim", claim.Name, "resource", to.resource)
	return nil
}

// giveUp deletes a claim that can get no Machine, so that Karpenter makes another.
// One without a NodePool, which nobody would make again, has the template's
// launchTimeout for its offering to come back, and then moves to another (see
// package nodeclaim).
func (r *Reconciler) giveUp(ctx context.Context, claim *karpv1.NodeClaim, reason error) error {
	var gone notOffered
	if !errors.As(reason, &gone) {
		return reason
	}
	if _, pooled := claim.Labels[karpv1.NodePoolLabelKey]; !pooled {
		log.FromContext(ctx).Info("NodeClaim waits, for its template does not offer what it was launched with", "NodeClaim", claim.Name, "reason", reason.Error())
		return r.refuse(ctx, claim, reason)
	}
	r.recorder.Publish(offeringGone(claim, reason))
	precondition := client.Preconditions{UID: &claim.UID}
	if err := client.IgnoreNotFound(r.clusters.Workload.GetClient().Delete(ctx, claim, precondition)); err != nil {
		return ignoreConflict(fmt.Errorf("deleting NodeClaim %s: %w", claim.Name, err))
	}
	log.FromContext(ctx).Info("deleted NodeClaim that can get no Machine", "NodeClaim", claim.Name, "reason", reason.Error())
	return nil
}
