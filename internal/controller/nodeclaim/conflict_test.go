// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// A conflict on a claim is tried again although the predicates drop the event of the write that caused
// it: core has written a condition that no decision depends on.
func TestConflictsAreTriedAgain(t *testing.T) {
	w := newWorld(launched("a", func(c *karpv1.NodeClaim) { c.Status.ProviderID = "real://gone" }))
	w.api = interceptor.NewClient(w.api, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return apierrors.NewConflict(schema.GroupResource{}, "a", nil)
		},
	})
	result, err := w.newProcess().Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: resourceName}})
	if err != nil {
		t.Fatal(err)
	}
	if result.RequeueAfter <= 0 || result.RequeueAfter > time.Second {
		t.Errorf("the next attempt is after %s", result.RequeueAfter)
	}
}
