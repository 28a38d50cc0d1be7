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

// createTemplates makes copies of base templates. One that exists has the same
// content, for its name is a hash of that. Who owns them, and when they go, is up to
// the reconciler of templates.
func (r *Reconciler) createTemplates(ctx context.Context, templates []*unstructured.Unstructured) error {
	for _, object := range templates {
		err := r.clusters.Management.GetClient().Create(ctx, object, client.FieldValidation("Strict"))
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
		log.FromContext(ctx).Info("created template", "kind", object.GetKind(), "template", client.ObjectKeyFromObject(object))
	}
	return nil
}
