// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Get, List and Delete answer that a Machine does not exist only if it was deleted. While clusterctl
// moves the Cluster, and after it has moved it, they return another error, also if the caches lag
// behind, and if the cache has had the Machine of the claim before.
func TestAbsenceOfMachines(t *testing.T) {
	active := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name, Finalizers: []string{clusterv1.ClusterFinalizer}}}
	paused := active.DeepCopy()
	paused.Spec.Paused = new(true)
	deleting := active.DeepCopy()
	deleting.DeletionTimestamp = new(metav1.NewTime(time.Now()))
	deletedForMove := deleting.DeepCopy()
	deletedForMove.Spec.Paused = new(true)
	for name, tc := range map[string]struct {
		cached, live *clusterv1.Cluster // nil for none
		recorded     string             // reason of a template's condition
		want         string             // in the error; empty if the Machine was deleted
	}{
		"the Cluster exists":                          {cached: active, live: active},
		"the Cluster is being deleted":                {cached: deleting, live: deleting, recorded: v1alpha1.ReasonClusterDeleting},
		"the Cluster was deleted":                     {recorded: v1alpha1.ReasonClusterDeleted},
		"the Cluster was deleted within the last 1 s": {recorded: v1alpha1.ReasonClusterDeleting},
		"the Cluster is paused":                       {cached: paused, live: paused, want: "Cluster clusters/prod is paused"},
		"the Cluster is paused, and the cache lags":   {cached: active, live: paused, want: "is paused"},
		"clusterctl deletes the Cluster":              {cached: deletedForMove, live: deletedForMove, recorded: v1alpha1.ReasonClusterPaused, want: "is paused"},
		"the Cluster was moved":                       {recorded: v1alpha1.ReasonClusterNotFound, want: "kubeconfig of the other management cluster"},
		"the Cluster was moved, and the cache lags":   {cached: active, recorded: v1alpha1.ReasonClusterPaused, want: "does not exist"},
		"the Cluster is not created yet":              {want: "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			cached := fake.NewClientBuilder().WithScheme(scheme.Scheme).
				WithIndex(&clusterv1.Machine{}, clients.MachineClaimField, func(client.Object) []string { return nil }).
				WithIndex(&clusterv1.Machine{}, clients.MachineProviderIDField, func(client.Object) []string { return nil }).
				WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimProviderIDField, func(client.Object) []string { return nil })
			live := fake.NewClientBuilder().WithScheme(scheme.Scheme)
			if tc.cached != nil {
				cached = cached.WithObjects(tc.cached)
			}
			if tc.live != nil {
				live = live.WithObjects(tc.live)
			}
			if tc.recorded != "" {
				template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
				template.StatusConditions().SetFalse(v1alpha1.ConditionClusterReady, tc.recorded, "recorded")
				cached = cached.WithObjects(template)
			}
			both := fixture.Cluster{Client: cached.Build(), Live: live.Build()}
			provider := New(&clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, nil, clock.RealClock{})
			check := func(what string, err error) {
				t.Helper()
				switch {
				case tc.want == "" && !cloudprovider.IsNodeClaimNotFoundError(err):
					t.Errorf("%s: got %v, want that the Machine does not exist", what, err)
				case tc.want != "" && (err == nil || cloudprovider.IsNodeClaimNotFoundError(err) || !strings.Contains(err.Error(), tc.want)):
					t.Errorf("%s: got %v, want another error with %q", what, err, tc.want)
				}
			}
			waits, registered := launched("claim", "small"), launched("registered", "small")
			waits.Status.ProviderID, registered.Status.ProviderID = planner.ProvisionalID(waits.UID), "real://m"
			check("Delete", provider.Delete(t.Context(), waits))
			check("Delete of a registered claim", provider.Delete(t.Context(), registered))
			provider.ending.SetDefault(string(registered.UID), registered.Status.ProviderID)
			check("Delete of a claim whose Machine the cache has had", provider.Delete(t.Context(), registered))
			for _, claim := range []*karpv1.NodeClaim{waits, registered} {
				_, err := provider.Get(t.Context(), claim.Status.ProviderID)
				check("Get "+claim.Status.ProviderID, err)
			}
			provider.marked.SetDefault(string(registered.UID), struct{}{})
			if err := provider.Delete(t.Context(), registered); !cloudprovider.IsNodeClaimNotFoundError(err) {
				t.Errorf("Delete of a claim whose Machine this process has marked: got %v, want that the Machine does not exist", err)
			}
			if machines, err := provider.List(t.Context()); (err == nil) != (tc.want == "") || len(machines) > 0 {
				t.Errorf("List: got %d Machines and %v", len(machines), err)
			}
		})
	}
}
