// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// controlPlaneLabel is what kubeadm labels and taints the Nodes of the control plane with (kubernetes:
// cmd/kubeadm/app/constants/constants.go, LabelNodeRoleControlPlane).
const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// createControlPlaneNode creates the Node that each real cluster has, on which no Pod of a trial can run. If there is no Node
// at all, kube-scheduler fails with a reason that no event ends, and tries a Pod again only after a back-off of up to 10 s
// (kubernetes: pkg/scheduler/schedule_one.go, ErrNoNodesAvailable).
func createControlPlaneNode(ctx context.Context, on *stack.Stack) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "control-plane", Labels: map[string]string{controlPlaneLabel: "", corev1.LabelHostname: "control-plane"}}}
	node.Spec.Taints = []corev1.Taint{{Key: controlPlaneLabel, Effect: corev1.TaintEffectNoSchedule}}
	if err := on.Workload.Create(ctx, node); err != nil {
		return fmt.Errorf("creating the Node of the control plane: %w", err)
	}
	return nil
}

func isControlPlane(node *corev1.Node) bool {
	_, is := node.Labels[controlPlaneLabel]
	return is
}
