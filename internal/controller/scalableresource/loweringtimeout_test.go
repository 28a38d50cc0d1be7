// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// A Machine is marked for deletion while a claim waits for a Machine that Cluster API does not
// create, so that replicas count both. The marked Machine is deleted after loweringTimeout, not
// earlier. The time of a stall does not count, as far as the process has seen it.
func TestPatience(t *testing.T) {
	// moment is one reconcile.
	type moment struct {
		at     time.Duration // since the Machine was marked
		stands bool          // whether the resource is stalled
		fresh  bool          // whether the operator was restarted before the reconcile
		kept   bool          // whether the Machine exists afterwards
		due    time.Duration // the latest time until the next reconcile
	}
	for name, moments := range map[string][]moment{
		"Cluster API acts": {
			{at: time.Minute, kept: true, due: 2 * time.Minute},
			{at: loweringTimeout - time.Second, kept: true, due: time.Second},
			{at: loweringTimeout},
		},
		"Cluster API acts again after a stall": {
			{at: loweringTimeout - time.Minute, stands: true, kept: true, due: loweringTimeout},
			{at: loweringTimeout + time.Minute, stands: true, kept: true, due: loweringTimeout},
			{at: loweringTimeout + 2*time.Minute, kept: true, due: loweringTimeout - time.Minute},
			{at: 2*loweringTimeout + time.Minute - time.Second, kept: true, due: time.Second},
			{at: 2*loweringTimeout + time.Minute},
		},
		"the operator does not know of the stall": {
			{at: loweringTimeout + time.Minute, stands: true, kept: true, due: loweringTimeout},
			{at: loweringTimeout + 2*time.Minute, fresh: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			marked := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			served := types.NamespacedName{Namespace: "fleet", Name: "served"}
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
			labels := map[string]string{clusterv1.MachineDeploymentNameLabel: "general", v1alpha1.TemplateLabel: "general"}
			deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: "general", Generation: 2, Labels: labels}}
			deployment.Spec.Replicas = new(int32(2))
			set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: "general-1", Labels: labels}}
			set.Spec.Replicas = new(int32(2))
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: served.Namespace, Name: "m", UID: "m", Labels: labels,
				Annotations: map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: timestamp.Format(marked), v1alpha1.DrainHookAnnotation: ""},
			}}
			claim := launchedClaim("small")
			claim.CreationTimestamp = metav1.NewTime(marked)
			claim.Annotations[v1alpha1.ScalableResourceAnnotation] = deployment.Name
			clusters := clustersWith(served, cluster, &[]string{}, cluster, claim, deployment, set, machine)
			management, clock := clusters.Management.GetClient(), clocktesting.NewFakeClock(marked)
			r := newReconciler(clusters, catalog.New(clusters), silent{}, clock)
			for _, m := range moments {
				clock.SetTime(marked.Add(m.at))
				if m.fresh {
					r = newReconciler(clusters, catalog.New(clusters), silent{}, clock)
				}
				acted := &clusterv1.MachineDeployment{}
				if err := management.Get(t.Context(), client.ObjectKeyFromObject(deployment), acted); err != nil {
					t.Fatal(err)
				}
				acted.Status.ObservedGeneration = acted.Generation
				if m.stands {
					acted.Status.ObservedGeneration--
				}
				if err := management.Update(t.Context(), acted); err != nil {
					t.Fatal(err)
				}
				result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: deployment.Name}})
				if err != nil {
					t.Fatal(err)
				}
				err = management.Get(t.Context(), client.ObjectKeyFromObject(machine), &clusterv1.Machine{})
				if client.IgnoreNotFound(err) != nil {
					t.Fatal(err)
				}
				if kept := !apierrors.IsNotFound(err); kept != m.kept {
					t.Fatalf("after %s: the Machine exists: %t, want %t", m.at, kept, m.kept)
				}
				if m.kept && (result.RequeueAfter == 0 || result.RequeueAfter > m.due) {
					t.Errorf("after %s: the next reconcile is due in %s, want at most %s", m.at, result.RequeueAfter, m.due)
				}
			}
		})
	}
}
