// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rejectSurplus deletes the Pods for which their Nodes have no room. A kubelet would reject them (kubernetes:
// pkg/kubelet/lifecycle/predicate.go), and kwok does not. The scheduler binds a second Pod to a Node if the answer to the
// first binding is lost, and the cache of the scheduler does not have that Pod yet.
func (s *Scene) rejectSurplus(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := s.Workload.List(ctx, pods, client.MatchingLabels(podLabels)); err != nil {
		return err
	}
	for _, pod := range surplus(pods.Items) {
		s.Tell("Node %s has no room for Pod %s", pod.Spec.NodeName, pod.Name)
		if err := client.IgnoreNotFound(s.Workload.Delete(ctx, &pod)); err != nil {
			return err
		}
	}
	return nil
}

// surplus returns the Pods after the first one of each Node. A Node has room for one.
func surplus(pods []corev1.Pod) []corev1.Pod {
	occupied := map[string]bool{}
	var more []corev1.Pod
	for _, pod := range pods {
		node := pod.Spec.NodeName
		if node == "" || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		if occupied[node] {
			more = append(more, pod)
		}
		occupied[node] = true
	}
	return more
}
