// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// Of a template that is being deleted, empty generated resources are deleted at once, and adopted ones
// stay without the marks of this operator.
func TestTemplateDeletion(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	// What a resource is after two reconciles.
	const deleted, unadopted, generated, adopted = "deleted", "unadopted", "generated", "adopted"
	for name, tc := range map[string]struct {
		deleting, adopted, claim bool
		want                     string
	}{
		"a generated one":                         {want: generated},
		"a generated one, being deleted":          {deleting: true, want: deleted},
		"a generated one in use, being deleted":   {deleting: true, claim: true, want: generated},
		"an adopted one":                          {adopted: true, want: adopted},
		"an adopted one, being deleted":           {deleting: true, adopted: true, want: unadopted},
		"an adopted one in use, is being deleted": {deleting: true, adopted: true, claim: true, want: adopted},
	} {
		t.Run(name, func(t *testing.T) {
			resource := existing()
			resource.Namespace, resource.Name, resource.UID = served.Namespace, "resource", "1"
			resource.Labels = offered()
			resource.Spec.Replicas = new(int32(0))
			if tc.adopted {
				resource.Annotations[v1alpha1.AdoptedAnnotation], resource.Annotations[v1alpha1.UnmanagedReplicasAnnotation] = now.Format(time.RFC3339), "0"
			}
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
			objects := []client.Object{cluster, resource}
			if tc.claim {
				claim := launchedClaim("existing")
				claim.Annotations[v1alpha1.ScalableResourceAnnotation] = resource.Name
				objects = append(objects, claim)
			}
			clusters := clustersWith(served, cluster, &[]string{}, objects...)
			c := clusters.Workload.GetClient()
			if tc.deleting {
				ends := template()
				if err := c.Patch(t.Context(), ends, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+v1alpha1.TerminationFinalizer+`"]}}`))); err != nil {
					t.Fatal(err)
				}
				if err := c.Delete(t.Context(), ends); err != nil {
					t.Fatal(err)
				}
			}
			r := newReconciler(clusters, catalog.New(clusters), silent{}, clocktesting.NewFakeClock(now))
			for range 2 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: resource.Name}}); err != nil {
					t.Fatal(err)
				}
			}
			after := &clusterv1.MachineDeployment{}
			err := c.Get(t.Context(), client.ObjectKeyFromObject(resource), after)
			got := generated
			switch {
			case apierrors.IsNotFound(err):
				got = deleted
			case err != nil:
				t.Fatal(err)
			case after.Labels[v1alpha1.TemplateLabel] == "":
				got = unadopted
			case scalable.Adopted(after):
				got = adopted
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
