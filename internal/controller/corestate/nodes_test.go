// SPDX-License-Identifier: Apache-2.0

package corestate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	corecloudprovider "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/node/health"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/controllers/state/informer"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/cloudprovider"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Core restarts the Nodes of templates with remediation, replaces the others, and follows a template that changes.
func TestNodeReader(t *testing.T) {
	ctx := options.ToContext(t.Context(), &options.Options{FeatureGates: options.FeatureGates{NodeRepair: true}})
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", Generation: 1}}
	template.Spec.Remediation = &v1alpha1.Remediation{}
	template.StatusConditions().SetTrue(v1alpha1.ConditionRemediationReady)
	node := func(name, template string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clients.NodeTemplateLabel: template}},
			Spec:       corev1.NodeSpec{ProviderID: "sim://" + name},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", LastTransitionTime: metav1.NewTime(now.Add(-31 * time.Minute))},
			}},
		}
	}
	nodes := []*corev1.Node{node("remediated", "general"), node("of-none", ""), node("of-another", "other")}
	builder := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(template).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} })
	for _, n := range nodes {
		builder = builder.WithObjects(n)
	}
	workload := builder.Build()
	provider := cloudprovider.New(nil, nil, clock.RealClock{})
	policies, err := health.NewRepairPolicyMatcher(ctx, provider)
	if err != nil {
		t.Fatal(err)
	}
	cluster := state.NewCluster(clocktesting.NewFakeClock(now), workload, provider, state.WithRepairPolicyMatcher(policies))
	clusters := &clients.Clusters{Workload: fixture.Cluster{Client: workload}}
	controller := informer.NewNodeController(NewNodeReader(workload, clusters), cluster)
	actions := func() map[string]corecloudprovider.RepairAction {
		t.Helper()
		for _, n := range nodes {
			if _, err := controller.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(n)}); err != nil {
				t.Fatal(err)
			}
		}
		found := map[string]corecloudprovider.RepairAction{}
		for n := range cluster.Nodes() {
			found[n.Node.Name] = n.GetRepairResult(now).Action
		}
		return found
	}
	check := func(when string, want corecloudprovider.RepairAction) {
		t.Helper()
		got := actions()
		if got["remediated"] != want || got["of-none"] != corecloudprovider.ReplaceNode || got["of-another"] != corecloudprovider.ReplaceNode {
			t.Errorf("%s: got %v, want %s for the first", when, got, want)
		}
	}
	check("the remediation is ready", corecloudprovider.RebootNode)
	template.StatusConditions().SetFalse(v1alpha1.ConditionRemediationReady, "x", "x")
	if err := workload.Update(ctx, template); err != nil {
		t.Fatal(err)
	}
	check("it is not ready any more", corecloudprovider.ReplaceNode)

	stored := &corev1.Node{}
	if err := workload.Get(ctx, client.ObjectKeyFromObject(nodes[0]), stored); err != nil || stored.Status.Conditions[0].Reason != "NodeStatusUnknown" {
		t.Errorf("the Node was written: %v, %v", stored.Status.Conditions, err)
	}
	claim := &karpv1.NodeClaim{}
	if err := NewNodeReader(workload, clusters).Get(ctx, client.ObjectKey{Name: "none"}, claim); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("got %v for a NodeClaim that does not exist", err)
	}
}
