// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

func TestClusterReady(t *testing.T) {
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	for name, tc := range map[string]struct {
		change func(*clusterv1.Cluster) // nil for no Cluster
		before string                   // reason that the condition has
		reason string                   // empty if it is ready
		words  []string
	}{
		"usable":                           {change: func(*clusterv1.Cluster) {}},
		"missing":                          {reason: v1alpha1.ReasonClusterNotFound, words: []string{"fleet/served", "--cluster-name", "kubeconfig"}},
		"missing after its deletion began": {before: v1alpha1.ReasonClusterDeleting, reason: v1alpha1.ReasonClusterDeleted, words: []string{"fleet/served was deleted", "delete the NodePools", "--cluster-name"}},
		"missing since it was deleted":     {before: v1alpha1.ReasonClusterDeleted, reason: v1alpha1.ReasonClusterDeleted},
		"missing after it was moved":       {before: v1alpha1.ReasonClusterPaused, reason: v1alpha1.ReasonClusterNotFound},
		"created again":                    {change: func(*clusterv1.Cluster) {}, before: v1alpha1.ReasonClusterDeleted},
		"paused":                           {change: func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) }, reason: v1alpha1.ReasonClusterPaused, words: []string{"spec.paused"}},
		"being deleted": {
			change: func(c *clusterv1.Cluster) { c.DeletionTimestamp = new(metav1.Now()) },
			reason: v1alpha1.ReasonClusterDeleting, words: []string{"fleet/served is being deleted", "no Machines are created", "delete the NodePools", "--cluster-name"},
		},
		"deleted by clusterctl, which moves it": {
			change: func(c *clusterv1.Cluster) { c.DeletionTimestamp, c.Spec.Paused = new(metav1.Now()), new(true) },
			reason: v1alpha1.ReasonClusterPaused,
		},
		"without infrastructure": {change: func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = nil }, reason: v1alpha1.ReasonClusterNotProvisioned, words: []string{"infrastructure"}},
		"without control plane":  {change: func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = nil }, reason: v1alpha1.ReasonClusterNotProvisioned, words: []string{"control plane"}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.change != nil {
				cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name, Finalizers: []string{clusterv1.ClusterFinalizer}}}
				cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: new(true), ControlPlaneInitialized: new(true)}
				tc.change(cluster)
				objects = append(objects, cluster)
			}
			management := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
			r := &Reconciler{clusters: &clients.Clusters{Cluster: served, Management: fixture.Cluster{Client: management}}}
			template := &v1alpha1.KarpenterMachineTemplate{}
			if tc.before != "" {
				template.StatusConditions().SetFalse(v1alpha1.ConditionClusterReady, tc.before, "before")
			}
			if err := r.setClusterReady(t.Context(), template); err != nil {
				t.Fatal(err)
			}
			got := template.StatusConditions().Get(v1alpha1.ConditionClusterReady)
			if got.IsTrue() != (tc.reason == "") || tc.reason != "" && got.Reason != tc.reason {
				t.Errorf("got %s, %s, want reason %q", got.Status, got.Reason, tc.reason)
			}
			for _, word := range tc.words {
				if !strings.Contains(got.Message, word) {
					t.Errorf("the message %q does not contain %q", got.Message, word)
				}
			}
		})
	}
}
