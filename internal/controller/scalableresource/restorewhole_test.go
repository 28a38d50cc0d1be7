// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A claim that has lost all its annotations gets those of its launch, with the price and the revision, if its
// template still leads to the resource of its Machine. Otherwise it gets only what its Machine shows.
func TestRestoredAnnotationsAreThoseOfTheLaunch(t *testing.T) {
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	cluster := &clusterv1.Cluster{}
	cluster.Namespace, cluster.Name = served.Namespace, served.Name
	generated := generatedName(t, served, cluster)
	for name, tc := range map[string]struct {
		resource string
		whole    bool
	}{
		"the template leads to the resource":       {resource: generated, whole: true},
		"the template leads to another one by now": {resource: "earlier"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := launchedClaim("small")
			claim.Annotations = map[string]string{"user": "own"}
			clusters := clustersWith(served, cluster, &[]string{}, cluster, claim)
			launch, err := generate.LaunchOfClaim(t.Context(), clusters, catalog.New(clusters), claim)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"user": "own", v1alpha1.ScalableResourceAnnotation: tc.resource, v1alpha1.TemplateHashAnnotation: "abc"}
			if tc.whole {
				want = launch.Annotate(map[string]string{"user": "own"})
			}
			machine := fixture.OwnedBy("m", "set")
			machine.Labels = map[string]string{v1alpha1.TemplateHashLabel: "abc"}
			r := &Reconciler{clusters: clusters, catalog: catalog.New(clusters)}
			api := clusters.Workload.GetClient()
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			if err := r.restoreAnnotations(t.Context(), &decided{Snapshot: &snapshot.Snapshot{Name: tc.resource}}, machine, claim); err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, claim.Annotations); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if claim.Annotations[v1alpha1.PriceAnnotation] == "" && tc.whole {
				t.Error("the price is lost")
			}
		})
	}
}
