// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// createObjects makes what a scalable resource refers to. What exists has the same
// content, for its name has a hash of that. Who owns these objects, and when they go,
// is up to the reconciler of templates.
func (r *Reconciler) createObjects(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		err := r.clusters.Management.GetClient().Create(ctx, object, client.FieldValidation("Strict"))
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
		log.FromContext(ctx).Info("created object", "kind", object.GetKind(), "object", client.ObjectKeyFromObject(object))
	}
	return nil
}
