// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/kubeadm"
)

// staticPods are the components that kubeadm lets the kubelet of a control plane run, without an etcd of its own.
var staticPods = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// startControlPlane does what the kubelet and `kubeadm init` do in the cluster when the Node of a control plane has joined. All
// of it can have been done before, by a process that has crashed.
func (r *machineReconciler) startControlPlane(ctx context.Context, node *corev1.Node, join *kubeadm.Join) error {
	if join == nil || !join.ControlPlane {
		return nil
	}
	for _, component := range staticPods {
		if err := client.IgnoreAlreadyExists(r.workload.Create(ctx, staticPod(component, node))); err != nil {
			return err
		}
	}
	if join.ClusterConfiguration == "" {
		return nil
	}
	return client.IgnoreAlreadyExists(r.workload.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kubeadm-config"},
		Data:       map[string]string{"ClusterConfiguration": join.ClusterConfiguration},
	}))
}

// staticPod returns the Pod with which a kubelet shows that it runs a component. Kwok reports that its container runs.
func staticPod(component string, node *corev1.Node) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: component + "-" + node.Name,
			Labels:      map[string]string{"component": component, "tier": "control-plane"},
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "simulated"},
		},
		Spec: corev1.PodSpec{
			NodeName: node.Name, HostNetwork: true, PriorityClassName: "system-node-critical",
			Containers:  []corev1.Container{{Name: component, Image: "registry.k8s.io/" + component + ":" + node.Status.NodeInfo.KubeletVersion}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		},
	}
}
