// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// While Cluster API rolls a resource out, or another controller sets its replicas, the operator
// removes its hooks from Machines that are being deleted as soon as their Nodes are drained, and
// changes nothing else.
func TestSuspendedResource(t *testing.T) {
	type state struct{ Deleting, Marked, Held bool }
	for name, tc := range map[string]struct {
		before     state
		claim      bool
		registered bool
		ending     bool    // the Cluster is being deleted
		want       []state // after each reconcile
	}{
		"one that serves a claim":                     {before: state{Held: true}, claim: true, registered: true, want: []state{{Held: true}}},
		"one that serves no claim":                    {before: state{Held: true}, want: []state{{Held: true}}},
		"one that was marked before":                  {before: state{Marked: true, Held: true}, want: []state{{Marked: true, Held: true}}},
		"deleted, and Karpenter drains its Node":      {before: state{Deleting: true, Held: true}, claim: true, registered: true, want: []state{{Deleting: true, Held: true}}},
		"deleted, and Karpenter has drained its Node": {before: state{Deleting: true, Marked: true, Held: true}, claim: true, registered: true, want: []state{{Deleting: true, Marked: true}}},
		"deleted, and its Node has not registered":    {before: state{Deleting: true, Held: true}, claim: true, want: []state{{Deleting: true, Marked: true, Held: true}, {Deleting: true, Marked: true}}},
		"deleted, and its claim no longer exists":     {before: state{Deleting: true, Held: true}, want: []state{{Deleting: true, Marked: true, Held: true}, {Deleting: true, Marked: true}}},
		"deleted with its Cluster":                    {before: state{Deleting: true, Held: true}, ending: true, want: []state{{Deleting: true, Held: true}}},
	} {
		for kind, resource := range map[string]func() []client.Object{"MachineDeployment": rollingOut, "generated MachineDeployment": changedByHand, "MachinePool": managedByAnother} {
			t.Run(kind+": "+name, func(t *testing.T) {
				now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
				served := types.NamespacedName{Namespace: "fleet", Name: "served"}
				cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
				if tc.ending {
					cluster.DeletionTimestamp, cluster.Finalizers = new(metav1.NewTime(now)), []string{clusterv1.ClusterFinalizer}
				}
				objects := append(resource(), cluster)
				label := lo.Ternary(kind == "MachinePool", clusterv1.MachinePoolNameLabel, clusterv1.MachineDeploymentNameLabel)
				machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
					Namespace: served.Namespace, Name: "m", UID: "m", Finalizers: []string{clusterv1.MachineFinalizer},
					Labels:      map[string]string{label: "general", v1alpha1.TemplateLabel: "general", v1alpha1.NodeClaimUIDLabel: "c"},
					Annotations: map[string]string{v1alpha1.NodeClaimAnnotation: "c", v1alpha1.DrainHookAnnotation: ""},
				}}
				machine.Spec.ProviderID, machine.Status.NodeRef.Name = "real://m", "n"
				machine.Spec.InfrastructureRef = *template().Spec.Template.Spec.InfrastructureRef
				if tc.before.Marked {
					machine.Annotations[v1alpha1.MarkedForDeletionAtAnnotation] = timestamp.Format(now)
				}
				if tc.before.Deleting {
					machine.DeletionTimestamp = new(metav1.NewTime(now))
				}
				if tc.claim {
					claim := launchedClaim("small")
					claim.Annotations[v1alpha1.ScalableResourceAnnotation], claim.Status.ProviderID = "general", "real://m"
					if tc.registered {
						claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
					}
					objects = append(objects, claim)
				}
				var writes []string
				clusters := clustersWith(served, cluster, &writes, append(objects, machine)...)
				r := newReconciler(clusters, catalog.New(clusters), silent{}, clocktesting.NewFakeClock(now))
				for i, want := range tc.want {
					if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}}); err != nil {
						t.Fatal(err)
					}
					after := &clusterv1.Machine{}
					if err := clusters.Management.GetClient().Get(t.Context(), client.ObjectKeyFromObject(machine), after); err != nil {
						t.Fatal(err)
					}
					got := state{!after.DeletionTimestamp.IsZero(), lifecycle.IsMarked(after), lifecycle.WaitsForHook(after)}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("reconcile %d (-want +got):\n%s", i+1, diff)
					}
				}
				for _, write := range writes {
					if write != "patch Machine" && !tc.ending {
						t.Errorf("got the write %q", write)
					}
				}
			})
		}
	}
}

// rollingOut returns an adopted MachineDeployment, with Machines in two MachineSets.
func rollingOut() []client.Object {
	labels := map[string]string{v1alpha1.TemplateLabel: "general", clusterv1.MachineDeploymentNameLabel: "general"}
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "general", Labels: labels,
		Annotations: map[string]string{v1alpha1.AdoptedAnnotation: "2025-01-01T00:00:00Z", v1alpha1.UnmanagedReplicasAnnotation: "2"},
	}}
	deployment.Spec.Replicas = new(int32(3))
	objects := []client.Object{deployment}
	for _, name := range []string{"general-1", "general-2"} {
		set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, Labels: labels}}
		set.Spec.Replicas = new(int32(2))
		objects = append(objects, set)
	}
	return objects
}

// changedByHand returns a generated MachineDeployment with Machines in an older MachineSet.
func changedByHand() []client.Object {
	objects := rollingOut()
	objects[0].SetAnnotations(nil)
	objects[1].SetAnnotations(map[string]string{clusterv1.DisableMachineCreateAnnotation: "true"})
	return objects
}

// managedByAnother returns a MachinePool whose replicas another controller sets.
func managedByAnother() []client.Object {
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "general", Labels: map[string]string{v1alpha1.TemplateLabel: "general"},
		Annotations: map[string]string{clusterv1.ReplicasManagedByAnnotation: "another"},
	}}
	pool.Spec.Replicas = new(int32(3))
	pool.Spec.Template.Spec.InfrastructureRef = *template().Spec.Template.Spec.InfrastructureRef
	return []client.Object{pool}
}
