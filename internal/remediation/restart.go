// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// Impossible is the error of a restart that fails each time.
type Impossible struct{ error }

// Unwrap returns the cause.
func (i Impossible) Unwrap() error { return i.error }

// impossible returns the error of a request to an API server as Impossible if the same request fails again.
func impossible(err error) error {
	unusable := reference.Unusable("")
	if errors.As(err, &unusable) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) {
		return Impossible{err}
	}
	return err
}

// Restart creates the remediation request for the Machine of a claim, from the template that spec.remediation of its
// template names. It reports whether it has created the request; it has not if one asks for the restart already. The
// error is Impossible if the restart fails each time. With any other error, call it again.
func Restart(ctx context.Context, clusters *clients.Clusters, template *v1alpha1.KarpenterMachineTemplate, machine *clusterv1.Machine, claim *karpv1.NodeClaim, operation string) (bool, error) {
	ref, management := template.Spec.Remediation.TemplateRef, clusters.Management.GetClient()
	request := Request{Kind: KindOf(ref), Name: machine.Name, Operation: operation}
	asked, err := isAskedFor(ctx, clusters, request, claim.Name)
	if err != nil || asked {
		return false, impossible(err)
	}
	base, _, err := reference.Existing(ctx, management, ref, machine.Namespace)
	if err != nil {
		return false, impossible(err)
	}
	if base == nil {
		return false, Impossible{fmt.Errorf("%s %s does not exist", ref.Kind, types.NamespacedName{Namespace: machine.Namespace, Name: ref.Name})}
	}
	object, err := newRequest(base, machine, claim.Name, operation)
	if err != nil {
		return false, Impossible{err}
	}
	if err := nodeclaims.NoteRemediation(ctx, clusters.Workload.GetClient(), claim, request.String()); err != nil {
		return false, err
	}
	if err := management.Create(ctx, object); err != nil {
		return false, impossible(fmt.Errorf("creating %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err))
	}
	log.FromContext(ctx).Info("created remediation request", "kind", object.GetKind(), "request", client.ObjectKeyFromObject(object), "NodeClaim", claim.Name)
	return true, nil
}

// isAskedFor reports whether a request asks for a restart already. While the request of an earlier restart exists, it returns
// an error.
func isAskedFor(ctx context.Context, clusters *clients.Clusters, request Request, claim string) (bool, error) {
	existing, err := live(ctx, clusters, request)
	if err != nil {
		return false, err
	}
	switch next(existing, operationOf(claim, request.Operation)) {
	case create:
		return false, nil
	case done:
		return true, nil
	case remove:
		if err := deleteRequest(ctx, clusters.Management.GetClient(), existing); err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("%s %s of an earlier restart is being deleted", request.Kind.Kind, request.Name)
}

// End deletes the remediation request of a claim, if the operator has created it, and removes the annotation of the claim.
func End(ctx context.Context, clusters *clients.Clusters, claim *karpv1.NodeClaim) error {
	if request, named := RequestOf(claim); named {
		existing, err := live(ctx, clusters, request)
		if unusable := reference.Unusable(""); errors.As(err, &unusable) {
			existing, err = nil, nil // its kind no longer exists
		}
		if err != nil {
			return err
		}
		if existing != nil && existing.GetDeletionTimestamp() == nil && request.isFor(existing, claim.Name, clusters.Cluster.Name) {
			if err := deleteRequest(ctx, clusters.Management.GetClient(), existing); err != nil {
				return err
			}
		}
	}
	return nodeclaims.EndRemediation(ctx, clusters.Workload.GetClient(), claim)
}

// live reads a request from the API server; nil if it does not exist. There is no cache of requests: they are read when a
// restart begins and ends.
func live(ctx context.Context, clusters *clients.Clusters, request Request) (*unstructured.Unstructured, error) {
	kind, err := reference.Kind(ctx, clusters.Management.GetClient(), request.Kind)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	key := types.NamespacedName{Namespace: clusters.Cluster.Namespace, Name: request.Name}
	if err := clusters.Management.GetAPIReader().Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("getting %s %s: %w", kind.Kind, key, err)
	}
	return object, nil
}

// deleteRequest deletes a request, and never another one of the same name.
func deleteRequest(ctx context.Context, management client.Client, request *unstructured.Unstructured) error {
	uid := request.GetUID()
	err := management.Delete(ctx, request, client.Preconditions{UID: &uid})
	if requeue.IsChanged(err) {
		return nil // it no longer exists, or another request has its name
	}
	if err != nil {
		return fmt.Errorf("deleting %s %s: %w", request.GetKind(), client.ObjectKeyFromObject(request), err)
	}
	log.FromContext(ctx).Info("deleted remediation request", "kind", request.GetKind(), "request", client.ObjectKeyFromObject(request))
	return nil
}
