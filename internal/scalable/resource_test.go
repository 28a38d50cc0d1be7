// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"testing"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A MachineDeployment and a MachinePool can have the same name: a user can create one with
// the name of a generated one.
func TestGet(t *testing.T) {
	ours := map[string]string{v1alpha1.TemplateLabel: "general"}
	deployment := func(labels map[string]string) client.Object {
		return &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "x", Labels: labels}}
	}
	pool := func(labels map[string]string) client.Object {
		return &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "x", Labels: labels}}
	}
	neighbours := func() client.Object { // its label was edited
		object := deployment(ours)
		object.(*clusterv1.MachineDeployment).Spec.Template.Spec.ClusterName = "neighbour"
		return object
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string // empty for none
	}{
		"none":                              {},
		"a MachineDeployment":               {[]client.Object{deployment(ours)}, "MachineDeployment clusters/x"},
		"a MachinePool":                     {[]client.Object{pool(ours)}, "MachinePool clusters/x"},
		"two, one a used MachineDeployment": {[]client.Object{deployment(ours), pool(nil)}, "MachineDeployment clusters/x"},
		"two, one a used MachinePool":       {[]client.Object{deployment(nil), pool(ours)}, "MachinePool clusters/x"},
		"a user's MachinePool":              {[]client.Object{pool(nil)}, "MachinePool clusters/x"},
		"two of a user":                     {[]client.Object{deployment(nil), pool(nil)}, "MachineDeployment clusters/x"},
		"one of another Cluster":            {[]client.Object{neighbours()}, ""},
		"two, one of another Cluster":       {[]client.Object{neighbours(), pool(nil)}, "MachinePool clusters/x"},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := fixture.Clusters(tc.objects...)
			got, err := Get(t.Context(), clusters, "x")
			if err != nil || (got == nil) != (tc.want == "") || got != nil && got.String() != tc.want {
				t.Errorf("got %v (%v), want %q", got, err, tc.want)
			}
			all, err := List(t.Context(), clusters)
			served := lo.CountBy(tc.objects, func(object client.Object) bool {
				return !isOfOther(clusters, New(object).MachineTemplate().Spec.ClusterName)
			})
			if err != nil || len(all) != served {
				t.Errorf("listed %v (%v), want %d", all, err, served)
			}
		})
	}
}

// If the cache lacks the newest replicas, the provider has had less time to see them than
// the cache shows.
func TestIsCurrent(t *testing.T) {
	withReplicas := func(replicas int32, age time.Duration) *Resource {
		pool := New(fixture.MachinePool(nil))
		pool.SetReplicas(replicas, fixture.Noon.Add(-age))
		return pool
	}
	again := withReplicas(2, time.Minute)
	again.SetUID("another")
	for name, tc := range map[string]struct {
		stored *Resource
		want   bool
	}{
		"the same":                {withReplicas(2, time.Minute), true},
		"others":                  {withReplicas(1, time.Minute), false},
		"the same, but set later": {withReplicas(2, time.Second), false},
		"another of that name":    {again, false},
		"none":                    {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.stored != nil {
				objects = append(objects, tc.stored.API())
			}
			if got, err := withReplicas(2, time.Minute).IsCurrent(t.Context(), fixture.Clusters(objects...)); err != nil || got != tc.want {
				t.Errorf("got %t (%v), want %t", got, err, tc.want)
			}
		})
	}
}
