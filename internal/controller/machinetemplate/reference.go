// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/controller/enqueue"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

// problem is why a reference cannot be used.
type problem struct{ reason, message string }

// resolve reads the object of a reference from the served Cluster's namespace. It returns a
// problem if Cluster API cannot use the object, or it is not accepted. It also adds watches,
// so that changes of the object, and of objects generated from it, trigger a reconcile.
func (r *Reconciler) resolve(ctx context.Context, ref clusterv1.ContractVersionedObjectReference, kind scalable.Kind, accepts func(*unstructured.Unstructured) error) (*problem, error) {
	gvk, err := reference.Kind(ctx, r.clusters.Management.GetClient(), ref.GroupKind())
	if unusable := reference.Unusable(""); errors.As(err, &unusable) {
		return &problem{v1alpha1.ReasonReferenceKindUnusable, unusable.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := r.kinds.Watch(gvk, enqueue.Later(r.templates.OfReferenced)); err != nil {
		return nil, err
	}
	key := types.NamespacedName{Namespace: r.clusters.Cluster.Namespace, Name: ref.Name}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	if err := r.clusters.Management.GetClient().Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return &problem{v1alpha1.ReasonReferenceNotFound, fmt.Sprintf("%s %s does not exist, or has the label cluster.x-k8s.io/cluster-name of another Cluster: create it in the served Cluster's namespace, or correct the name", ref.Kind, key)}, nil
		}
		return nil, fmt.Errorf("getting %s %s: %w", ref.Kind, key, err)
	}
	if err := accepts(object); err != nil {
		return &problem{reasonOf(err), err.Error()}, nil
	}
	return nil, r.kinds.Watch(kind.MadeOf(gvk), enqueue.Later(r.templates.OfGenerated))
}

// readAllowed reads what a template may refer to. It also watches the Secrets that are allowed by their label.
func (r *Reconciler) readAllowed(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) (tenancy.Allowed, error) {
	if r.clusters.Allowed.SecretLabel != nil {
		if err := r.kinds.WatchMetadata(clients.SecretMetadata(), enqueue.Later(r.templates.All)); err != nil {
			return tenancy.Allowed{}, err
		}
	}
	return generate.ReadAllowed(ctx, r.clusters, template)
}

// reasonOf returns the reason of a condition for an object that is not accepted.
func reasonOf(problem error) string {
	if refused := (tenancy.NotAllowed{}); errors.As(problem, &refused) {
		return refused.Reason
	}
	return v1alpha1.ReasonReferenceKindUnusable
}
