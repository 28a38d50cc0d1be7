// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// The mark of a Machine of a MachinePool adds a hook. A Machine that Cluster API deletes with its Cluster
// gets none, and its claim waits until the Machine no longer exists.
func TestDeleteWithCluster(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	for name, tc := range map[string]struct {
		clusterDeleting, clusterDeleted, machineDeleting, want bool
	}{
		"the Cluster stays": {want: true},
		"the Cluster stays, a user has deleted the Machine": {machineDeleting: true, want: true},
		"both are being deleted":                            {clusterDeleting: true, machineDeleting: true},
		"the Cluster no longer exists":                      {clusterDeleted: true, machineDeleting: true},
		"only the Cluster is being deleted so far":          {clusterDeleting: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := launched("claim", "small")
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: served.Namespace, Name: "m", UID: "m", Finalizers: []string{clusterv1.MachineFinalizer},
				Labels: map[string]string{clusterv1.ClusterNameLabel: served.Name, clusterv1.MachinePoolNameLabel: "pool", v1alpha1.NodeClaimUIDLabel: string(claim.UID)},
			}}
			machine.Status.NodeRef.Name = "n"
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name, Finalizers: []string{clusterv1.ClusterFinalizer}}}
			if tc.clusterDeleting {
				cluster.DeletionTimestamp = &now
			}
			if tc.machineDeleting {
				machine.DeletionTimestamp = &now
			}
			objects := []client.Object{machine, cluster}
			if tc.clusterDeleted {
				objects = objects[:1]
			}
			c := fixture.WithJSONPatch(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
				WithIndex(&clusterv1.Machine{}, clients.MachineClaimField, func(o client.Object) []string { return []string{string(lifecycle.ClaimUID(o))} }).Build())
			both := fixture.Cluster{Client: c}
			provider := New(&clients.Clusters{Cluster: served, Workload: both, Management: both}, nil, clock.RealClock{})
			if err := provider.Delete(t.Context(), claim); err != nil {
				t.Fatalf("got %v, want that the claim waits", err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(machine), machine); err != nil {
				t.Fatal(err)
			}
			if marked, held := lifecycle.IsMarked(machine), lifecycle.HoldsInstance(machine); marked != tc.want || held != tc.want {
				t.Errorf("marked: %t, with a hook: %t, want %t", marked, held, tc.want)
			}
		})
	}
}
