// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// clusterctl has moved a Cluster: it has created a MachineDeployment and its Machines again, with new
// creation times and without a status. The operator writes nothing, although all Machines seem to be
// younger than the adoption, and none seems to have a Node.
func TestMovedMachinesStay(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	moved := metav1.NewTime(now.Add(-time.Second))
	of := map[string]string{clusterv1.MachineDeploymentNameLabel: "general", v1alpha1.TemplateLabel: "general"}
	machine := func(name string) *clusterv1.Machine {
		machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: name, UID: types.UID(name), CreationTimestamp: moved, Labels: map[string]string{}}}
		for key, value := range of {
			machine.Labels[key] = value
		}
		machine.Spec.ProviderID = "real://" + name
		return machine
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		machines    []*clusterv1.Machine // others than the one of the claim
	}{
		"generated": {},
		"adopted, with unmanaged Machines": {
			annotations: map[string]string{v1alpha1.AdoptedAnnotation: timestamp.Format(now.Add(-time.Hour)), v1alpha1.UnmanagedReplicasAnnotation: "2"},
			machines:    []*clusterv1.Machine{machine("a"), machine("b")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
			deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: "general", CreationTimestamp: moved, Labels: of, Annotations: tc.annotations}}
			deployment.Spec.Replicas = new(int32(1 + len(tc.machines)))
			set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: "general-x", CreationTimestamp: moved, Labels: of}}
			set.Spec.Replicas = deployment.Spec.Replicas
			claim := launchedClaim("small")
			claim.Annotations[v1alpha1.ScalableResourceAnnotation], claim.Status.ProviderID = "general", "real://c"
			claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
			linked := machine("c")
			linked.Labels[v1alpha1.NodeClaimUIDLabel] = string(claim.UID)
			linked.Annotations = map[string]string{v1alpha1.NodeClaimAnnotation: claim.Name, v1alpha1.DrainHookAnnotation: ""}
			objects := []client.Object{cluster, deployment, set, claim, linked}
			for _, machine := range tc.machines {
				objects = append(objects, machine)
			}
			var writes []string
			clusters := clustersWith(served, cluster, &writes, objects...)
			// At first, and when every spareTTLSeconds and launchTimeoutSeconds has passed since the move.
			for _, at := range []time.Time{now, now.Add(24 * time.Hour)} {
				r := newReconciler(clusters, catalog.New(clusters), silent{}, clocktesting.NewFakeClock(at))
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}}); err != nil {
					t.Fatal(err)
				}
			}
			if len(writes) > 0 {
				t.Errorf("got the writes %q", writes)
			}
		})
	}
}
