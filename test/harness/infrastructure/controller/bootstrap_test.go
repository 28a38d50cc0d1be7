// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

const bootstrapData = `#cloud-config
write_files:
- path: /run/kubeadm/join.yaml
  content: |
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: JoinConfiguration
    discovery:
      bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: "127.0.0.1:6443", unsafeSkipCAVerification: true}
    nodeRegistration:
      name: NAME
      taints: [{key: dedicated, effect: NoSchedule}]
      kubeletExtraArgs: [{name: max-pods, value: "20"}, {name: node-labels, value: "disk=ssd"}]
runcmd:
- kubeadm join --config /run/kubeadm/join.yaml
`

// A machine tries to boot until its bootstrap data works, which changes nothing for the infrastructure, and joins as it says.
func TestBootstrap(t *testing.T) {
	c := cluster()
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
	w := newWorld(t, c, ownerMachine(), simulatedMachine())
	w.workloadCA = []byte{}
	for range 3 {
		w.settleAfter(2 * time.Second)
	}
	data := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"}}
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-abcdef"},
		Data:       map[string][]byte{"token-secret": []byte("0123456789abcdef"), "usage-bootstrap-authentication": []byte("true"), "expiration": []byte("2999-01-01T00:00:00Z")},
	}
	for _, step := range []struct {
		want   string
		change func() error
	}{
		{`"none" not found`, func() error { return nil }},
		{"it does not begin with", func() error { return w.management.Create(w.ctx, data) }},
		{"the Node would have the name other", func() error { return w.setData(data, strings.ReplaceAll(bootstrapData, "NAME", "other")) }},
		{"the machine looks for it at 127.0.0.1:6443", func() error {
			w.setEndpoint(c, 443)
			return w.setData(data, strings.ReplaceAll(bootstrapData, "NAME", machineName))
		}},
		{"the API server has no bootstrap token", func() error { w.setEndpoint(c, 6443); return nil }},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if next := w.settleAfter(bootRetry); next != bootRetry {
			t.Errorf("%s: it tries again in %s", step.want, next)
		}
		w.wantCondition(infrav1.BootstrapSucceeded, metav1.ConditionFalse, BootstrapFailedReason)
		if message := meta.FindStatusCondition(w.machine().Status.Conditions, infrav1.BootstrapSucceeded).Message; !strings.Contains(message, step.want) {
			t.Errorf("message %q, want %q in it", message, step.want)
		}
		w.wantReady(metav1.ConditionTrue, clusterv1.ProvisionedReason)
		if w.node() != nil {
			t.Fatalf("%s: the Node has joined", step.want)
		}
	}
	if err := w.workload.Create(w.ctx, token); err != nil {
		t.Fatal(err)
	}
	w.settleAfter(bootRetry)
	w.wantCondition(infrav1.BootstrapSucceeded, metav1.ConditionTrue, infrav1.BootstrapSucceeded)
	node := w.node()
	if diff := cmp.Diff([]corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}, node.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	if pods := node.Status.Allocatable.Pods().Value(); pods != 20 || node.Labels["disk"] != "ssd" || node.Labels[corev1.LabelHostname] != machineName {
		t.Errorf("%d Pods, labels %v", pods, node.Labels)
	}
}

func (w *testCluster) setData(secret *corev1.Secret, data string) error {
	secret.Data = map[string][]byte{"value": []byte(data)}
	return w.management.Update(w.ctx, secret)
}

func (w *testCluster) setEndpoint(c client.Object, port int32) {
	w.update(c, func() { c.(*clusterv1.Cluster).Spec.ControlPlaneEndpoint.Port = port })
}

const initData = `#cloud-config
write_files:
- path: /run/kubeadm/kubeadm.yaml
  content: |
    ---
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: ClusterConfiguration
    clusterName: demo
    ---
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: InitConfiguration
runcmd:
- kubeadm init --config /run/kubeadm/kubeadm.yaml
`

// The first machine of a control plane needs no API server to join. What it creates in the cluster can exist already.
func TestFirstControlPlaneMachine(t *testing.T) {
	w := newWorld(t, cluster(), ownerMachine(), simulatedMachine())
	w.workloadCA = []byte{}
	data := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"}, Data: map[string][]byte{"value": []byte(initData)}}
	existing := staticPod("kube-scheduler", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machineName}})
	if err := errors.Join(w.management.Create(w.ctx, data), w.workload.Create(w.ctx, existing)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.settleAfter(bootRetry)
	}
	w.wantCondition(infrav1.BootstrapSucceeded, metav1.ConditionTrue, infrav1.BootstrapSucceeded)
	if diff := cmp.Diff([]corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}, w.node().Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	config := &corev1.ConfigMap{}
	if err := w.workload.Get(w.ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kubeadm-config"}, config); err != nil || !strings.Contains(config.Data["ClusterConfiguration"], "clusterName: demo") {
		t.Errorf("kubeadm-config: %v, %v", config.Data, err)
	}
	pods := &corev1.PodList{}
	if err := w.workload.List(w.ctx, pods, client.InNamespace(metav1.NamespaceSystem)); err != nil || len(pods.Items) != len(staticPods) {
		t.Errorf("%d static Pods, %v; want %d", len(pods.Items), err, len(staticPods))
	}
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != machineName || !strings.HasSuffix(pod.Name, "-"+machineName) {
			t.Errorf("Pod %s on Node %s", pod.Name, pod.Spec.NodeName)
		}
		ready := slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		})
		if pod.Status.Phase != corev1.PodRunning || !ready {
			t.Errorf("Pod %s: phase %q, conditions %v", pod.Name, pod.Status.Phase, pod.Status.Conditions)
		}
	}
}
