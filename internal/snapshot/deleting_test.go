// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// TestReadWithCluster reads a resource with two claims. One has a Machine. The other has waited for
// longer than launchTimeoutSeconds for replicas that were rejected. When the resource was adopted, it had
// one more unmanaged Machine, which no longer exists.
func TestReadWithCluster(t *testing.T) {
	type decision struct {
		Observed, Waits, Fails, EndsWithout bool
		Replicas                            int32
	}
	for name, tc := range map[string]struct {
		deleting, paused, rollingOut bool
		pausedCluster, pausedInSpec  bool // the latter is what Cluster API does with those of a paused topology
		ofUser                       bool // the operator has not generated it
		want                         decision
	}{
		"stays, and its Cluster is paused":         {pausedCluster: true},
		"stays, and is paused in its spec":         {pausedInSpec: true},
		"being deleted, and is paused in its spec": {deleting: true, pausedInSpec: true, want: decision{Observed: true, EndsWithout: true, Replicas: 1}},
		"of a user":                    {ofUser: true},
		"stays":                        {want: decision{Observed: true, Waits: true, Fails: true, Replicas: 3}},
		"stays, and is paused":         {paused: true},
		"stays, during a rollout":      {rollingOut: true, want: decision{Observed: true, Replicas: 1}},
		"being deleted":                {deleting: true, want: decision{Observed: true, EndsWithout: true, Replicas: 1}},
		"being deleted, in a rollout":  {deleting: true, rollingOut: true, want: decision{Observed: true, EndsWithout: true, Replicas: 1}},
		"being deleted, and is paused": {deleting: true, paused: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name, Finalizers: []string{clusterv1.ClusterFinalizer}}}
			if tc.deleting {
				cluster.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
			}
			labels := map[string]string{clusterv1.MachineDeploymentNameLabel: "general"}
			resource := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: fixture.Served.Namespace, Name: "general", Labels: map[string]string{v1alpha1.TemplateLabel: "general"},
				Annotations: map[string]string{v1alpha1.AdoptedAnnotation: timestamp.Format(fixture.Noon.Add(-2 * durations.LaunchTimeout)), v1alpha1.UnmanagedReplicasAnnotation: "1"},
			}}
			resource.Spec.Replicas = new(int32(1))
			cluster.Spec.Paused, resource.Spec.Paused = &tc.pausedCluster, &tc.pausedInSpec
			if tc.ofUser {
				resource.Labels = nil
			}
			if tc.paused {
				resource.Annotations[clusterv1.PausedAnnotation] = ""
			}
			sets := []clusterv1.MachineSet{{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "new", Labels: labels}}, {ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "old", Labels: labels}}}
			sets[0].Spec.Replicas, sets[1].Spec.Replicas = new(int32(1)), new(int32(0))
			if tc.rollingOut {
				sets[1].Spec.Replicas = new(int32(1))
			}
			waiting, has := fixture.Claim(2*durations.LaunchTimeout), fixture.Claim(2*durations.LaunchTimeout)
			has.Name, has.UID = "d", "d"
			waiting.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonRejected, "denied")
			for i := range waiting.Status.Conditions {
				waiting.Status.Conditions[i].LastTransitionTime = waiting.CreationTimestamp
			}
			for _, claim := range []*karpv1.NodeClaim{waiting, has} {
				claim.Annotations = map[string]string{v1alpha1.ScalableResourceAnnotation: "general"}
			}
			machine := fixture.OfMachineDeployment(fixture.Machine(durations.LaunchTimeout))
			machine.Labels[v1alpha1.NodeClaimUIDLabel] = "d"
			both := fixture.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(cluster, resource, &sets[0], &sets[1], waiting, has, machine).
				WithIndex(&clusterv1.MachineSet{}, clients.ResourceField, func(o client.Object) []string { return []string{clients.ResourceOf(o)} }).
				WithIndex(&clusterv1.Machine{}, clients.ResourceField, func(o client.Object) []string { return []string{clients.ResourceOf(o)} }).
				WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimResourceField, func(o client.Object) []string {
					return []string{o.GetAnnotations()[v1alpha1.ScalableResourceAnnotation]}
				}).
				Build()}
			clusters := &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}
			snap, err := Read(t.Context(), clusters, catalog.New(clusters), "general", fixture.Noon, Known{})
			if err != nil {
				t.Fatal(err)
			}
			got := decision{Observed: snap != nil}
			if snap != nil {
				registered := has.DeepCopy()
				registered.Name, registered.UID = "registered", "registered"
				registered.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
				snap.State.Claims = append(snap.State.Claims, ClaimOf(registered))
				plan := planner.Decide(&snap.State)
				waits := plan.Outcomes[waiting.UID]
				got = decision{true, plan.Waiting.Has(waiting.UID), waits.Failure != failure.Failure{}, waits.Ends, plan.Replicas}
				if plan.Outcomes[has.UID].Ends && !tc.rollingOut && !tc.pausedInSpec {
					t.Error("a claim with a Machine ends as if it had none")
				}
				if plan.Outcomes[registered.UID].Ends {
					t.Error("a claim that has its Node ends as if it waited for a Machine")
				}
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
