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
		pod := staticPod(component, node)
		if err := client.IgnoreAlreadyExists(r.workload.Create(ctx, pod)); err != nil {
			return err
		}
		created := pod.DeepCopy()
		setRunning(pod, metav1.NewTime(r.clock.Now()))
		if err := r.workload.Status().Patch(ctx, pod, client.MergeFrom(created)); err != nil {
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

// staticPod returns the Pod with which a kubelet shows that it runs a component.
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

// setRunning sets what a kubelet reports of a Pod whose containers run. Kwok v0.8 does not report it of each Pod that is created as early as
// these. It passes over Pods of a Node whose lease its cache lacks, and lists them only once: right after it has created that lease
// (pkg/kwok/controllers/pod_controller.go, watchResources; node_lease_controller.go, Held).
func setRunning(pod *corev1.Pod, now metav1.Time) {
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	pod.Status.Conditions, pod.Status.ContainerStatuses = nil, nil
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
}
