// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Cluster API leaves out its drain only if no Node of the Machine has Pods that Karpenter would have
// evicted, by whichever of its names and IDs the Node is known, or if its time is over.
func TestMarkWithoutDrain(t *testing.T) {
	pod := func(change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{NodeName: "node"}}
		for _, f := range change {
			f(p)
		}
		return p
	}
	terminates := func(at time.Time) func(*karpv1.NodeClaim) {
		return func(c *karpv1.NodeClaim) {
			c.Annotations = map[string]string{karpv1.NodeClaimTerminationTimestampAnnotationKey: at.Format(time.RFC3339)}
		}
	}
	for name, tc := range map[string]struct {
		// The Node has the ID sim://node, and its name is "node". The Machine has its ID and refers to it.
		machine func(*clusterv1.Machine)
		claim   func(*karpv1.NodeClaim)
		noNode  bool
		pod     *corev1.Pod
		drains  bool
	}{
		"no Pod":                              {},
		"a Pod":                               {pod: pod(), drains: true},
		"a Pod of another Node":               {pod: pod(func(p *corev1.Pod) { p.Spec.NodeName = "other" })},
		"a Pod of a Node that does not exist": {pod: pod(), noNode: true},
		"a Pod that has ended":                {pod: pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })},
		"a static Pod": {pod: pod(func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node", UID: "n"}}
		})},
		"a Pod that tolerates the disruption": {pod: pod(func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} })},
		"a Pod that must not be disrupted":    {pod: pod(func(p *corev1.Pod) { p.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"} }), drains: true},
		"a Pod, and the Machine has got another ID": {pod: pod(), drains: true,
			machine: func(m *clusterv1.Machine) { m.Spec.ProviderID = "sim://other" }},
		"a Pod, and only the ID of the Machine leads to its Node": {pod: pod(), drains: true,
			machine: func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "former" }, claim: func(c *karpv1.NodeClaim) { c.Status.NodeName, c.Status.ProviderID = "", "" }},
		"a Pod, and only the name in the claim leads to its Node": {pod: pod(), drains: true,
			machine: func(m *clusterv1.Machine) { m.Status.NodeRef.Name, m.Spec.ProviderID = "former", "sim://other" }, claim: func(c *karpv1.NodeClaim) { c.Status.ProviderID = "sim://other" }},
		"a Pod, and only the ID of the claim leads to its Node": {pod: pod(), drains: true,
			machine: func(m *clusterv1.Machine) { m.Status.NodeRef.Name, m.Spec.ProviderID = "former", "sim://other" }, claim: func(c *karpv1.NodeClaim) { c.Status.NodeName = "" }},
		"a Pod, and only the Machine leads to its Node": {pod: pod(), drains: true,
			machine: func(m *clusterv1.Machine) { m.Spec.ProviderID = "sim://other" }, claim: func(c *karpv1.NodeClaim) { c.Status.NodeName, c.Status.ProviderID = "", "" }},
		"a Pod, and the time of the Node is over":     {pod: pod(), claim: terminates(fixture.Noon.Add(-time.Second))},
		"a Pod, and the time of the Node is not over": {pod: pod(), claim: terminates(fixture.Noon.Add(time.Second)), drains: true},
		"a Pod, and the time of the Node is not a time": {pod: pod(), claim: func(c *karpv1.NodeClaim) {
			terminates(fixture.Noon)(c)
			c.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey] = "noon"
		}, drains: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := launched("claim", "small")
			claim.Status.ProviderID, claim.Status.NodeName = "sim://node", "node"
			claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
			machine := fixture.OfMachineDeployment(fixture.Machine(time.Hour))
			machine.Finalizers = []string{clusterv1.MachineFinalizer}
			machine.Labels[v1alpha1.NodeClaimUIDLabel] = string(claim.UID)
			machine.Spec.ProviderID, machine.Status.NodeRef.Name = "sim://node", "node"
			if tc.machine != nil {
				tc.machine(machine)
			}
			if tc.claim != nil {
				tc.claim(claim)
			}
			objects := []client.Object{machine}
			if !tc.noNode {
				objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: corev1.NodeSpec{ProviderID: "sim://node"}})
			}
			if tc.pod != nil {
				objects = append(objects, tc.pod)
			}
			provider, c := newDrainProvider(objects...)
			if err := provider.Delete(t.Context(), claim); err != nil {
				t.Fatalf("got %v, want that the claim waits", err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(machine), machine); err != nil {
				t.Fatal(err)
			}
			if !lifecycle.IsMarked(machine) {
				t.Error("the Machine is not marked")
			}
			for _, key := range lifecycle.DrainAnnotations {
				if _, excluded := machine.Annotations[key]; excluded == tc.drains {
					t.Errorf("annotation %s: %t, want that Cluster API drains: %t", key, excluded, tc.drains)
				}
			}
		})
	}
}

func newDrainProvider(objects ...client.Object) (*CloudProvider, client.Client) {
	c := fixture.WithJSONPatch(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithIndex(&clusterv1.Machine{}, clients.MachineClaimField, func(o client.Object) []string { return []string{string(lifecycle.ClaimUID(o))} }).
		WithIndex(&clusterv1.Machine{}, clients.MachineProviderIDField, func(o client.Object) []string { return []string{o.(*clusterv1.Machine).Spec.ProviderID} }).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimProviderIDField, func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Status.ProviderID} }).
		WithIndex(&corev1.Node{}, "spec.providerID", func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build())
	both := fixture.Cluster{Client: c}
	clock := clocktesting.NewFakePassiveClock(fixture.Noon)
	return New(&clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, nil, clock), c
}

// Core calls Delete every 5 seconds. If Cluster API drains a Machine that core could not drain, that ends
// with the terminationGracePeriod of the claim, and not earlier.
func TestDrainEndsWithTerminationGracePeriod(t *testing.T) {
	claim := launched("claim", "small")
	claim.Status.NodeName = "node"
	claim.Annotations = map[string]string{karpv1.NodeClaimTerminationTimestampAnnotationKey: fixture.Noon.Add(time.Minute).Format(time.RFC3339)}
	machine := fixture.OfMachineDeployment(fixture.Machine(time.Hour))
	machine.Labels[v1alpha1.NodeClaimUIDLabel], machine.Status.NodeRef.Name = string(claim.UID), "node"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{NodeName: "node"}}
	provider, c := newDrainProvider(machine, pod, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})
	for _, step := range []struct {
		after  time.Duration
		noPod  bool
		drains bool
	}{
		{drains: true},
		{after: 5 * time.Second, drains: true},
		{after: 10 * time.Second, noPod: true, drains: true}, // it may wait for volumes
		{after: 61 * time.Second},
		{after: 66 * time.Second},
	} {
		provider.clock = clocktesting.NewFakePassiveClock(fixture.Noon.Add(step.after))
		if step.noPod {
			if err := c.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
		if err := provider.Delete(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(machine), machine); err != nil {
			t.Fatal(err)
		}
		for _, key := range lifecycle.DrainAnnotations {
			if _, excluded := machine.Annotations[key]; excluded == step.drains {
				t.Errorf("after %s: annotation %s: %t, want that Cluster API drains: %t", step.after, key, excluded, step.drains)
			}
		}
	}
}
