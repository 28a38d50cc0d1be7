// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A resource gets the annotations that its template has now, once, if the template is known and the Cluster stays.
func TestSetInPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*decided)
		want   bool
	}{
		"its template has changed":      {change: func(*decided) {}, want: true},
		"its template no longer exists": {change: func(s *decided) { s.Template = nil }},
		"its Cluster is being deleted":  {change: func(s *decided) { s.State.ClusterDeleting = true }},
		"its template is not yet resolved": {change: func(s *decided) {
			s.Template.Spec.Template.From = &v1alpha1.MachineTemplateSource{}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			resource := withReplicas(1)
			clusters := clustersWith(fixture.Served, cluster, &[]string{}, cluster, resource)
			r := newReconciler(clusters, catalog.New(clusters), &published{}, clocktesting.NewFakeClock(fixture.Noon))
			for i := range 2 {
				if err := clusters.Management.GetClient().Get(t.Context(), client.ObjectKeyFromObject(resource), resource); err != nil {
					t.Fatal(err)
				}
				if i == 1 && (resource.Annotations["mine"] == "x") != tc.want {
					t.Errorf("got annotations %v, want those of the template: %t", resource.Annotations, tc.want)
				}
				snap := &decided{Snapshot: &snapshot.Snapshot{Name: "general", Resource: scalable.New(resource), Template: template(), State: planner.State{Now: fixture.Noon}}}
				snap.Template.Spec.ScalableResource.Annotations = map[string]string{"mine": "x"}
				tc.change(snap)
				if changed, err := r.setInPlace(t.Context(), snap); err != nil || changed != (tc.want && i == 0) {
					t.Errorf("reconcile %d: changed: %t (%v)", i+1, changed, err)
				}
			}
		})
	}
}
