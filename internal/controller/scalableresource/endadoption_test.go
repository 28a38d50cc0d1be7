// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// An adoption ends when the template offers the MachineDeployment no longer, or ends, and no claim or Machine of the
// operator needs it.
func TestEndOfAdoption(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*decided)
		refuse bool
		want   bool
	}{
		"it is not offered":             {change: func(*decided) {}, want: true},
		"its template no longer exists": {change: func(s *decided) { s.Template = nil }, want: true},
		"a claim names it":              {change: func(s *decided) { s.Claims = []karpv1.NodeClaim{*launchedClaim("existing")} }},
		"it has a Machine": {change: func(s *decided) {
			s.Machines = map[string]*clusterv1.Machine{"m": fixture.Machine(time.Minute)}
		}},
		"its Machine is unmanaged": {change: func(s *decided) {
			s.Machines, s.Plan.Unmanaged = map[string]*clusterv1.Machine{"m": fixture.Machine(time.Minute)}, []string{"m"}
		}, want: true},
		"it is offered":            {change: func(s *decided) { s.Resource.SetLabels(offered()) }},
		"it may no longer be used": {change: func(s *decided) { s.Resource.SetLabels(offered()) }, refuse: true, want: true},
		"it is offered, and the template ends": {change: func(s *decided) {
			s.Resource.SetLabels(offered())
			s.Template.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
		}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := existing()
			deployment.Labels = offered()
			deployment.Annotations[v1alpha1.AdoptedAnnotation], deployment.Annotations[v1alpha1.UnmanagedReplicasAnnotation] = timestamp.Format(fixture.Noon), "0"
			if tc.refuse {
				deployment.Annotations[v1alpha1.AdoptableAnnotation] = "no"
			}
			consent := deployment.Annotations[v1alpha1.AdoptableAnnotation]
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			clusters := clustersWith(fixture.Served, cluster, &[]string{}, cluster, deployment)
			management := clusters.Management.GetClient()
			if err := management.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
				t.Fatal(err)
			}
			snap := &decided{Snapshot: &snapshot.Snapshot{Name: "existing", Resource: scalable.New(deployment.DeepCopy()), Template: template(), State: planner.State{Now: fixture.Noon}}}
			snap.Resource.GetLabels()[v1alpha1.InstanceTypeLabel] = "removed"
			tc.change(snap)
			r := newReconciler(clusters, catalog.New(clusters), &published{}, clocktesting.NewFakeClock(fixture.Noon))
			got, err := r.endAdoption(t.Context(), snap)
			if err != nil || got != tc.want {
				t.Errorf("ended: %t (%v), want %t", got, err, tc.want)
			}
			if err := management.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil || scalable.Adopted(deployment) == tc.want {
				t.Errorf("got %v and %v, want that it is adopted: %t", err, deployment.Annotations, !tc.want)
			}
			if got := deployment.Annotations[v1alpha1.AdoptableAnnotation]; got != consent {
				t.Errorf("%s: got %q, want %q, as the user has set it", v1alpha1.AdoptableAnnotation, got, consent)
			}
		})
	}
}

// offered returns the labels of an adopted MachineDeployment that its template offers.
func offered() map[string]string {
	return map[string]string{
		"discover": "yes", v1alpha1.TemplateLabel: "general", v1alpha1.InstanceTypeLabel: "existing", v1alpha1.CapacityTypeLabel: karpv1.CapacityTypeOnDemand,
	}
}
