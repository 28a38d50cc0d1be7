// SPDX-License-Identifier: Apache-2.0

package scalable_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A Machine is deleted only if its MachineSet has the replicas that the plan was made from.
func TestIsSetCurrent(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*clusterv1.MachineSet)
		want   bool
	}{
		"it is the same":             {change: func(*clusterv1.MachineSet) {}, want: true},
		"its replicas were raised":   {change: func(set *clusterv1.MachineSet) { set.Spec.Replicas = new(int32(3)) }},
		"it has not acted on them":   {change: func(set *clusterv1.MachineSet) { set.Generation = 9 }},
		"it is another of that name": {change: func(set *clusterv1.MachineSet) { set.UID = "other" }},
		"it no longer exists":        {change: func(set *clusterv1.MachineSet) { set.Name = "other" }, want: true},
		"it is raised while it is deleted": {change: func(set *clusterv1.MachineSet) {
			set.DeletionTimestamp, set.Finalizers = new(metav1.NewTime(fixture.Noon)), []string{"test/finalizer"}
			set.Spec.Replicas = new(int32(3))
		}, want: true},
		"it is being deleted": {change: func(set *clusterv1.MachineSet) {
			set.DeletionTimestamp, set.Finalizers = new(metav1.NewTime(fixture.Noon)), []string{"test/finalizer"}
		}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			cached := fixture.MachineSet("a", "general", 1)
			live := cached.DeepCopy()
			tc.change(live)
			clusters := fixture.Clusters(cached)
			clusters.Management = fixture.Cluster{Client: clusters.Management.GetClient(), Live: fixture.Clusters(live).Management.GetClient()}
			got, err := scalable.IsSetCurrent(t.Context(), clusters, client.ObjectKeyFromObject(cached))
			if err != nil || got != tc.want {
				t.Errorf("got %t and %v, want %t", got, err, tc.want)
			}
		})
	}
}
