// SPDX-License-Identifier: Apache-2.0

package coremetrics

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	metricsnode "sigs.k8s.io/karpenter/pkg/controllers/metrics/node"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// What is scraped is what core's controller sets. There is nothing before the operator leads.
func TestNodeMetricsAreTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCluster(t, 3)
		for _, step := range []struct {
			name string
			do   func()
		}{
			{"three Nodes", func() {}},
			{"later", func() { time.Sleep(time.Hour) }},
			{"one joins, one leaves", func() {
				addNode(t, cluster, 3)
				cluster.DeleteNode("node-1")
			}},
			{"a claim without a Node", func() {
				cluster.UpdateNodeClaim(&karpv1.NodeClaim{
					ObjectMeta: metav1.ObjectMeta{Name: "claim"}, Status: karpv1.NodeClaimStatus{ProviderID: "sim://9"},
				})
			}},
			{"a managed Node that is not initialized", func() {
				cluster.UpdateNodeClaim(&karpv1.NodeClaim{
					ObjectMeta: metav1.ObjectMeta{Name: "claim-0"},
					Status:     karpv1.NodeClaimStatus{ProviderID: "sim://0", Allocatable: resourcesOf("example.com/gpu", "4")},
				})
			}},
		} {
			step.do()
			core := nodeScrape(t, func() {
				if _, err := metricsnode.NewController(cluster).Reconcile(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
			ours := nodeScrape(t, func() { newNodeMetrics(cluster).leads.Store(true) })
			if diff := difference(core, ours); diff != "" {
				t.Errorf("%s (-core +ours):\n%s", step.name, diff)
			}
			if len(core.Texts) != 8 {
				t.Errorf("%s: %d metrics are compared, want 8", step.name, len(core.Texts))
			}
			if idle := nodeScrape(t, func() { newNodeMetrics(cluster) }); len(idle.Values) > 0 {
				t.Errorf("an operator that does not lead has %v", idle)
			}
		}
	})
}

// Two series with the same labels would fail the scrape, also of all other metrics.
func TestSeriesAreUnique(t *testing.T) {
	cluster := newCluster(t, 2)
	for i := range 2 {
		odd := pod(i, resourcesOf("example.com/A-b", "1", "example.com/a_b", "1"), "ReplicaSet")
		if err := cluster.UpdatePod(options.ToContext(t.Context(), &options.Options{}), odd); err != nil {
			t.Fatal(err)
		}
	}
	for node := range cluster.Nodes() {
		node.Node.Name = "twice"
	}
	if got := nodeScrape(t, func() { newNodeMetrics(cluster).leads.Store(true) }); len(got.Values) == 0 {
		t.Error("there are no series")
	}
}

// nodeScrape returns what is scraped from a registry of its own after an action.
func nodeScrape(t testing.TB, action func()) scrape {
	t.Helper()
	useRegistry(t)
	action()
	return scraped(t)
}

// newNodeMetrics returns what Setup registers instead of core's controller.
func newNodeMetrics(cluster *state.Cluster) *nodes {
	return Replace(metricsnode.NewController(cluster), cluster).(*nodes)
}

// Metrics exist from when the operator leads until it stops.
func TestOnlyTheLeaderHasNodeMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		useRegistry(t)
		mgr := &added{}
		if err := newNodeMetrics(newCluster(t, 1)).Register(t.Context(), mgr); err != nil {
			t.Fatal(err)
		}
		if _, ok := mgr.runnable.(manager.LeaderElectionRunnable); ok {
			t.Error("a runnable with its own rule for leader election, want the default: only the leader runs it")
		}
		series := func() int {
			synctest.Wait()
			return len(scraped(t).Values)
		}
		if got := series(); got != 0 {
			t.Errorf("%d series before the operator leads", got)
		}
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = mgr.runnable.Start(ctx) }()
		if series() == 0 {
			t.Error("the leader has no series")
		}
		stop()
		if got := series(); got != 0 {
			t.Errorf("%d series after the operator has stopped", got)
		}
	})
}

// added is a manager that keeps what is added.
type added struct {
	manager.Manager
	runnable manager.Runnable
}

// Add implements manager.Manager.
func (a *added) Add(r manager.Runnable) error {
	a.runnable = r
	return nil
}

// newCluster returns core's state of a cluster with Nodes that have two Pods each, one of a DaemonSet.
func newCluster(t testing.TB, count int) *state.Cluster {
	t.Helper()
	index := func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }
	workload := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithIndex(&corev1.Pod{}, "spec.nodeName", index).Build()
	cluster := state.NewCluster(clock.RealClock{}, workload, nil)
	for i := range count {
		addNode(t, cluster, i)
	}
	return cluster
}

func addNode(t testing.TB, cluster *state.Cluster, i int) {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("node-%d", i), CreationTimestamp: metav1.Now(),
			Labels: map[string]string{
				karpv1.NodePoolLabelKey: "pool", karpv1.CapacityTypeLabelKey: "spot", corev1.LabelInstanceTypeStable: "large",
				corev1.LabelTopologyZone: "zone-1", corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
			},
		},
		Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("sim://%d", i)},
		Status: corev1.NodeStatus{
			Capacity:    resourcesOf("cpu", "4", "memory", "16Gi", "pods", "110", "ephemeral-storage", "40Gi", "hugepages-2Mi", "0"),
			Allocatable: resourcesOf("cpu", "3900m", "memory", "15Gi", "pods", "110", "ephemeral-storage", "36Gi", "hugepages-2Mi", "0"),
		},
	}
	if err := cluster.UpdateNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	for _, owner := range []string{"DaemonSet", "ReplicaSet"} {
		if err := cluster.UpdatePod(options.ToContext(t.Context(), &options.Options{}), pod(i, resourcesOf("cpu", "333m", "memory", "100Mi"), owner)); err != nil {
			t.Fatal(err)
		}
	}
}

// pod returns a Pod on the i-th Node.
func pod(i int, requests corev1.ResourceList, owner string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", owner, i), Namespace: "default",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: owner, Name: owner}},
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i), Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
		}}},
	}
}

// resourcesOf returns resources from names and quantities.
func resourcesOf(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}
