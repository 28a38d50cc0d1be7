// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"fmt"
	"testing"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// A user deletes a generated MachineDeployment, or its MachineSet. Their controllers only delete, so a Machine
// whose Node is drained is deletable at once. The claim that waits gets a resource that creates Machines, because
// the other Nodes may be drained only when the claim has its Node.
func TestEnding(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
	for name, tc := range map[string]struct {
		deployment, set bool // what is being deleted
		drained         int  // of 10 Machines
		released        int  // Machines whose hooks are removed
		moved           bool
	}{
		"nothing is deleted":                     {drained: 4},
		"the MachineDeployment, and nothing yet": {deployment: true, drained: 4, released: 4, moved: true},
		"the MachineDeployment and its set":      {deployment: true, set: true, drained: 4, released: 4, moved: true},
		"only the MachineSet":                    {set: true, drained: 4, released: 4, moved: true},
		"only the MachineSet, and all drained":   {set: true, drained: 10, released: 10, moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			resource := generatedName(t, served, cluster)
			claim := launchedClaim("small")
			claim.Annotations[v1alpha1.ScalableResourceAnnotation] = resource
			unused := clustersWith(served, cluster, &[]string{}, cluster)
			launch, err := generate.LaunchOfClaim(t.Context(), unused, catalog.New(unused), claim)
			if err != nil {
				t.Fatal(err)
			}
			deployment := launch.Generated.Resource.API().(*clusterv1.MachineDeployment)
			deployment.UID, deployment.Finalizers, deployment.Spec.Replicas = "d", []string{clusterv1.MachineDeploymentFinalizer}, new(int32(10))
			labels := lo.Assign(deployment.Labels, map[string]string{clusterv1.MachineDeploymentNameLabel: resource, clusterv1.MachineSetNameLabel: resource + "-1"})
			set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{
				Namespace: served.Namespace, Name: resource + "-1", UID: "s", Labels: labels, Finalizers: []string{clusterv1.MachineSetFinalizer},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineDeployment", Name: resource, UID: "d", Controller: new(true)}},
			}}
			set.Spec.Replicas, set.Status.Replicas, set.Spec.Template = new(int32(10)), new(int32(10)), deployment.Spec.Template
			if tc.deployment {
				deployment.DeletionTimestamp = new(metav1.NewTime(now))
			}
			if tc.set {
				set.DeletionTimestamp = new(metav1.NewTime(now))
			}
			objects := []client.Object{cluster, claim, deployment, set}
			for i := range 10 {
				machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
					Namespace: served.Namespace, Name: fmt.Sprint("m", i), UID: types.UID(fmt.Sprint("m", i)), Labels: labels, Finalizers: []string{clusterv1.MachineFinalizer},
					DeletionTimestamp: new(metav1.NewTime(now)), Annotations: map[string]string{v1alpha1.DrainHookAnnotation: ""},
					OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: set.Name, UID: "s", Controller: new(true)}},
				}}
				machine.Status.NodeRef.Name, machine.Spec.ProviderID = machine.Name, "real://"+machine.Name
				if i < tc.drained {
					machine.Annotations[v1alpha1.MarkedForDeletionAtAnnotation] = timestamp.Format(now)
				} else {
					// Karpenter drains its Node.
					other := launchedClaim("small")
					other.Name, other.UID, other.Status.ProviderID = machine.Name, machine.UID, machine.Spec.ProviderID
					other.StatusConditions().SetTrue("Registered")
					other.Annotations[v1alpha1.ScalableResourceAnnotation] = resource
					machine.Labels = lo.Assign(labels, map[string]string{v1alpha1.NodeClaimUIDLabel: string(other.UID)})
					objects = append(objects, other)
				}
				objects = append(objects, machine)
			}
			clusters := clustersWith(served, cluster, &[]string{}, objects...)
			api := clusters.Management.GetClient()
			r := newReconciler(clusters, catalog.New(clusters), silent{}, clocktesting.NewFakeClock(now.Add(time.Second)))
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: resource}}); err != nil {
				t.Fatal(err)
			}

			machines := &clusterv1.MachineList{}
			if err := api.List(t.Context(), machines); err != nil {
				t.Fatal(err)
			}
			if released := lo.CountBy(machines.Items, func(m clusterv1.Machine) bool { return !lifecycle.HasHooks(&m) }); released != tc.released {
				t.Errorf("%d Machines lost their hooks, want %d", released, tc.released)
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil || tc.deployment && *deployment.Spec.Replicas != 10 {
				t.Errorf("the MachineDeployment that is being deleted has %d replicas (%v)", *deployment.Spec.Replicas, err)
			}
			next := claim.Annotations[v1alpha1.ScalableResourceAnnotation]
			if moved := next != resource; moved != tc.moved {
				t.Errorf("the claim has the resource %s, want another than %s: %t", next, resource, tc.moved)
			}
			if !tc.moved {
				return
			}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: next}}); err != nil {
				t.Fatal(err)
			}
			created := &clusterv1.MachineDeployment{}
			if err := api.Get(t.Context(), types.NamespacedName{Namespace: served.Namespace, Name: next}, created); err != nil {
				t.Fatal(err)
			}
			if lo.FromPtr(created.Spec.Replicas) != 1 || created.Labels[v1alpha1.TemplateHashLabel] != deployment.Labels[v1alpha1.TemplateHashLabel] {
				t.Errorf("got %d replicas and labels %v, want 1 and the same hash", lo.FromPtr(created.Spec.Replicas), created.Labels)
			}
		})
	}
}
