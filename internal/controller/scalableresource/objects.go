// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

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
