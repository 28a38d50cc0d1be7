// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// While Cluster API rolls out an adopted MachineDeployment, the claims whose Machines it deletes are
// deleted, so that Karpenter drains their Nodes. Waiting claims get no Machine and do not fail.
// After the rollout, its Machines serve them.
func TestClaimsOfARollout(t *testing.T) {
	registered := func(id string) func(*karpv1.NodeClaim) {
		return func(c *karpv1.NodeClaim) {
			c.Status.ProviderID = id
			c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
		}
	}
	waiting := launched("waits", func(c *karpv1.NodeClaim) { c.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)) })
	for i := range waiting.Status.Conditions {
		waiting.Status.Conditions[i].LastTransitionTime = waiting.CreationTimestamp
	}
	sets := []*clusterv1.MachineSet{machineSet("old", 2), machineSet("new", 1)}
	w := newWorld(sets[0], sets[1], waiting, launched("ends", registered("real://ends")), launched("stays", registered("real://stays")),
		launched("boots", func(c *karpv1.NodeClaim) { c.Status.ProviderID = "real://boots" }), machine("of-boots", linkedTo("boots"), withID("real://boots")),
		launched("replaced", func(c *karpv1.NodeClaim) { c.Status.ProviderID = "real://replaced" }),
		machine("of-ends", linkedTo("ends"), withID("real://ends"), func(m *clusterv1.Machine) { m.DeletionTimestamp = new(metav1.NewTime(now)) }),
		machine("of-stays", linkedTo("stays"), withID("real://stays")), machine("next"))
	deployment := &clusterv1.MachineDeployment{}
	deployment.Name, deployment.Namespace = resourceName, "fleet"
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		t.Fatal(err)
	}
	deployment.Annotations = map[string]string{v1alpha1.AdoptedAnnotation: timestamp.Format(now.Add(-time.Hour)), v1alpha1.UnmanagedReplicasAnnotation: "0"}
	if err := w.api.Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}

	if err := reconcileOnce(t, w.newProcess()); err != nil {
		t.Fatal(err)
	}
	for name, deleted := range map[string]bool{"waits": false, "ends": true, "stays": false, "boots": false, "replaced": false} {
		claim := w.claim(t, name)
		if got := !claim.DeletionTimestamp.IsZero(); got != deleted {
			t.Errorf("NodeClaim %s is being deleted: %t, want %t", name, got, deleted)
		}
		if condition := claim.StatusConditions().Get(v1alpha1.ConditionMachineAvailable); condition != nil {
			t.Errorf("NodeClaim %s got the condition %+v", name, condition)
		}
	}
	for _, name := range []string{"boots", "replaced"} {
		if id := w.claim(t, name).Status.ProviderID; id != "real://"+name {
			t.Errorf("NodeClaim %s has the provider ID %s", name, id)
		}
	}
	if claim := lifecycle.ClaimUID(w.machine(t, "next")); claim != "" {
		t.Errorf("a Machine of the rollout is linked to NodeClaim %s", claim)
	}
	if marks := w.marks(t); len(marks) > 0 {
		t.Errorf("marked offerings: %+v", marks)
	}

	sets[0].Spec.Replicas, sets[0].Status.Replicas = new(int32(0)), new(int32(0))
	if err := w.api.Update(t.Context(), sets[0]); err != nil {
		t.Fatal(err)
	}
	if err := reconcileOnce(t, w.newProcess()); err != nil {
		t.Fatal(err)
	}
	if claim := lifecycle.ClaimUID(w.machine(t, "next")); claim != "waits" {
		t.Errorf("after the rollout, its Machine is linked to NodeClaim %q", claim)
	}
}

// A claim that waits for a rollout ends with its Cluster, as all others.
func TestClaimsOfARolloutEndWithTheirCluster(t *testing.T) {
	w := newWorld(machineSet("old", 2), machineSet("new", 1), launched("waits"))
	deployment := &clusterv1.MachineDeployment{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: resourceName}, deployment); err != nil {
		t.Fatal(err)
	}
	deployment.Annotations = map[string]string{v1alpha1.AdoptedAnnotation: timestamp.Format(now.Add(-time.Hour)), v1alpha1.UnmanagedReplicasAnnotation: "0"}
	if err := w.api.Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	w.deleteCluster(t)
	if err := reconcileOnce(t, w.newProcess()); err != nil {
		t.Fatal(err)
	}
	if w.claim(t, "waits").DeletionTimestamp.IsZero() {
		t.Error("the claim is not deleted")
	}
}

// machineSet returns a MachineSet of the MachineDeployment that has all its Machines.
func machineSet(name string, replicas int32) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, Labels: map[string]string{clusterv1.MachineDeploymentNameLabel: resourceName}}}
	set.Spec.Replicas, set.Status.Replicas = &replicas, &replicas
	return set
}
