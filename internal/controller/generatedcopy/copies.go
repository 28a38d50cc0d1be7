// SPDX-License-Identifier: Apache-2.0

package generatedcopy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// unusedFor is how old a copy must be to be deleted while no scalable resource refers to it. The
// controller scalableresource creates copies before the resource that refers to them.
const unusedFor = 5 * time.Minute

// unusedForDeleted is the same once the KarpenterMachineTemplate is being deleted or no longer exists.
// Nothing new is launched then, so the resource of a new copy appears within seconds.
const unusedForDeleted = 30 * time.Second

// keepCopies maintains what was generated from base templates for a template: the scalable
// resources that refer to an object become its owners, a deleted object that a resource refers to
// is created again, and an object that nothing refers to is deleted. Cluster API itself makes the
// Cluster an owner (core/reconcilers/machineset, reconcileExternalTemplateReference), so garbage
// collection alone would keep copies for as long as the Cluster exists.
//
// The copies of other Clusters in the namespace belong to their operators, whatever template they
// are of: this operator neither counts nor writes them.
//
// The template is nil if it no longer exists. Its copies are in use until its scalable resources are
// deleted. keepCopies returns how many copies exist, and after what time to look at one again.
func (r *Reconciler) keepCopies(ctx context.Context, name string, template *v1alpha1.KarpenterMachineTemplate, resources []*scalable.Resource) (int, time.Duration, error) {
	management := r.clusters.Management.GetClient()
	users := usersOf(resources)
	used, err := r.kindsUsed(ctx, template, resources)
	if err != nil {
		return 0, 0, err
	}
	grace := lo.Ternary(template == nil || !template.DeletionTimestamp.IsZero(), unusedForDeleted, unusedFor)
	var existing int
	var next time.Duration
	var errs []error
	for _, kind := range r.kinds.List() {
		copies := &unstructured.UnstructuredList{}
		copies.SetGroupVersionKind(kind)
		if err := management.List(ctx, copies, client.MatchingLabels(scalable.GeneratedLabels(r.clusters.Cluster, name)), client.UnsafeDisableDeepCopy); err != nil {
			if !errors.As(err, &reference.Unlisted{}) || used.Has(kind.GroupKind()) {
				errs = append(errs, fmt.Errorf("listing the copies of kind %s: %w", kind.Kind, err))
			}
			continue
		}
		for i := range copies.Items {
			object := &copies.Items[i]
			key := copyKey{kind.GroupKind(), object.GetName()}
			referring := users[key]
			delete(users, key) // it is not missing
			if isOfMachine(object) || len(referring) == 0 && metav1.GetControllerOf(object) != nil {
				continue // it is deleted with its Machine or its controller
			}
			existing++
			left, err := r.keepCopy(ctx, object, referring, grace)
			errs = append(errs, err)
			next = requeue.Soonest(next, left)
		}
	}
	if template != nil {
		errs = append(errs, r.recreate(ctx, template, users))
	}
	return existing, next, errors.Join(errs...)
}

// kindsUsed returns the kinds that a template and its scalable resources refer to, and of what is generated from
// them. If another kind cannot be listed, that is a problem of other templates only.
func (r *Reconciler) kindsUsed(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, resources []*scalable.Resource) (sets.Set[schema.GroupKind], error) {
	kinds := sets.New[schema.GroupKind]()
	if template != nil {
		references, err := generate.References(ctx, r.clusters, template)
		if err != nil {
			return nil, err
		}
		for _, ref := range references {
			base := ref.GroupKind().WithVersion("")
			kinds.Insert(base.GroupKind(), scalable.KindOf(template.Spec.ScalableResource).MadeOf(base).GroupKind())
		}
	}
	for key := range usersOf(resources) {
		kinds.Insert(key.kind)
	}
	return kinds, nil
}

// isOfMachine reports whether Cluster API or a provider has created an object for a Machine, such
// as a KubeadmConfig. It has the labels of its Machine, and so that of the template.
func isOfMachine(object *unstructured.Unstructured) bool {
	return clients.ResourceOf(object) != "" || object.GetLabels()[clusterv1.MachineSetNameLabel] != ""
}

// copyKey identifies an object that a scalable resource refers to.
type copyKey struct {
	kind schema.GroupKind
	name string
}

// usersOf returns the scalable resources that refer to each object.
func usersOf(resources []*scalable.Resource) map[copyKey][]*scalable.Resource {
	users := map[copyKey][]*scalable.Resource{}
	for _, resource := range resources {
		for _, ref := range resource.References() {
			key := copyKey{ref.GroupKind(), ref.Name}
			users[key] = append(users[key], resource)
		}
	}
	return users
}

// keepCopy sets the owners of one copy, or deletes it if nothing refers to it and it is as old as
// grace. It returns a conflict if the copy has changed.
func (r *Reconciler) keepCopy(ctx context.Context, object *unstructured.Unstructured, users []*scalable.Resource, grace time.Duration) (time.Duration, error) {
	if object.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	management := r.clusters.Management.GetClient()
	if len(users) == 0 {
		if left := grace - r.clock.Since(object.GetCreationTimestamp().Time); left > 0 {
			return left, nil
		}
		// With the resourceVersion as precondition: should a resource refer to it again,
		// it gets an owner first.
		precondition := client.Preconditions{UID: new(object.GetUID()), ResourceVersion: new(object.GetResourceVersion())}
		err := management.Delete(ctx, object, precondition)
		if err == nil {
			log.FromContext(ctx).Info("deleted unused object", "kind", object.GetKind(), "object", client.ObjectKeyFromObject(object))
		}
		return 0, client.IgnoreNotFound(err)
	}
	annotations, err := r.annotationsOf(ctx, object)
	if err != nil {
		return 0, err
	}
	owners := ownersOf(object, users)
	if equality.Semantic.DeepEqual(owners, object.GetOwnerReferences()) && maps.Equal(annotations, object.GetAnnotations()) {
		return 0, nil
	}
	changed := object.DeepCopy()
	changed.SetOwnerReferences(owners)
	changed.SetAnnotations(annotations)
	return 0, precondition.Write(ctx, management, object, changed, "updating")
}

// annotationsOf returns the annotations that a copy should have: what Cluster API reads
// from templates is as on the base. Without its base, a copy keeps what it has.
func (r *Reconciler) annotationsOf(ctx context.Context, object *unstructured.Unstructured) (map[string]string, error) {
	name := generate.BaseOf(object)
	if name == "" {
		return object.GetAnnotations(), nil
	}
	base := &unstructured.Unstructured{}
	base.SetGroupVersionKind(object.GroupVersionKind())
	if err := r.clusters.Management.GetClient().Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: name}, base); err != nil {
		if apierrors.IsNotFound(err) {
			return object.GetAnnotations(), nil
		}
		return nil, fmt.Errorf("getting the base of %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	return generate.CopiedAnnotations(object.GetAnnotations(), base.GetAnnotations()), nil
}

// ownersOf returns the owners that an object should have: its other owners, and the scalable
// resources that refer to it, oldest first. If only one resource can refer to an object, Cluster API
// itself makes that resource the owner.
func ownersOf(object *unstructured.Unstructured, users []*scalable.Resource) []metav1.OwnerReference {
	slices.SortFunc(users, func(a, b *scalable.Resource) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
	})
	references := lo.FilterMap(users, func(user *scalable.Resource, _ int) (metav1.OwnerReference, bool) {
		return user.OwnerReference(), user.Kind().Shares()
	})
	if len(references) == 0 {
		return object.GetOwnerReferences()
	}
	owners := lo.Reject(object.GetOwnerReferences(), func(owner metav1.OwnerReference, _ int) bool { return owner.Kind == references[0].Kind })
	return append(owners, references...)
}

// recreate creates missing objects that scalable resources refer to, as far as the template still
// generates them.
func (r *Reconciler) recreate(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, missing map[copyKey][]*scalable.Resource) error {
	var errs []error
	for key, users := range missing {
		if object := r.generatedFor(ctx, template, key, users); object != nil {
			_, err := scalable.Create(ctx, r.clusters, object)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// generatedFor returns an object as the template generates it now for one of the resources that refer to it; nil if
// it does so for none. Other resources can be of an earlier state of the template, or be ending.
func (r *Reconciler) generatedFor(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate, key copyKey, users []*scalable.Resource) client.Object {
	for _, user := range users {
		if !user.GetDeletionTimestamp().IsZero() {
			continue
		}
		generated := generate.Current(ctx, r.clusters, r.catalog, template, user)
		if generated == nil {
			continue
		}
		for _, object := range generated.Objects {
			if key == (copyKey{object.GroupVersionKind().GroupKind(), object.GetName()}) {
				return object
			}
		}
	}
	return nil
}
