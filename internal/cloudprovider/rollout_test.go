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

// While an adopted MachineDeployment is rolled out, the operator marks a Machine whose Node is
// drained only if Cluster API deletes it: the rollout waits for that Machine. While the
// MachineDeployment is paused, it marks none.
func TestDeleteDuringARollout(t *testing.T) {
	for name, tc := range map[string]struct {
		deleting, annotated, paused, want bool
	}{
		"its Machine exists":                                      {},
		"its Machine is being deleted":                            {deleting: true, want: true},
		"its Machine is being deleted, and spec.paused":           {deleting: true, paused: true},
		"its Machine is being deleted, and the annotation paused": {deleting: true, annotated: true},
	} {
		t.Run(name, func(t *testing.T) {
			served := types.NamespacedName{Namespace: "fleet", Name: "served"}
			labels := map[string]string{v1alpha1.TemplateLabel: "general", clusterv1.MachineDeploymentNameLabel: "general"}
			deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: served.Namespace, Name: "general", Labels: labels, Annotations: map[string]string{v1alpha1.AdoptedAnnotation: "2025-01-01T00:00:00Z"},
			}}
			deployment.Spec.Paused = &tc.paused
			if tc.annotated {
				deployment.Annotations[clusterv1.PausedAnnotation] = ""
			}
			claim := launched("claim", "small")
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: served.Namespace, Name: "m", UID: "m", Finalizers: []string{clusterv1.MachineFinalizer},
				Labels: map[string]string{clusterv1.MachineDeploymentNameLabel: "general", v1alpha1.NodeClaimUIDLabel: string(claim.UID)},
			}}
			machine.Status.NodeRef.Name = "n"
			if tc.deleting {
				machine.DeletionTimestamp = new(metav1.NewTime(time.Now()))
			}
			objects := []client.Object{&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}, deployment, machine}
			for _, name := range []string{"old", "new"} {
				set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: name, Labels: labels}}
				set.Spec.Replicas = new(int32(1))
				objects = append(objects, set)
			}
			c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
				WithIndex(&clusterv1.Machine{}, clients.MachineClaimField, func(o client.Object) []string { return []string{o.GetLabels()[v1alpha1.NodeClaimUIDLabel]} }).
				WithIndex(&clusterv1.MachineSet{}, clients.ResourceField, func(o client.Object) []string { return []string{clients.ResourceOf(o)} }).Build()
			both := fixture.Cluster{Client: c}
			provider := New(&clients.Clusters{Cluster: served, Workload: both, Management: both}, nil, clock.RealClock{})
			if err := provider.Delete(t.Context(), claim); err != nil {
				t.Fatalf("got %v, want that the claim waits for its Machine", err)
			}
			after := &clusterv1.Machine{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(machine), after); err != nil {
				t.Fatal(err)
			}
			if got := lifecycle.IsMarked(after); got != tc.want {
				t.Errorf("marked for deletion: %t, want %t", got, tc.want)
			}
		})
	}
}
