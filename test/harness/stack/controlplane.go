// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/kubeadm"
)

// Workers selects all Nodes but that of the control plane, and all Machines and their infrastructure but those of the control plane.
var Workers client.ListOption = client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(without(kubeadm.ControlPlaneLabel), without(clusterv1.MachineControlPlaneLabel))}

func without(label string) labels.Requirement {
	return *lo.Must(labels.NewRequirement(label, selection.DoesNotExist, nil)) // It is constant.
}

// createControlPlaneNode creates the Node that each real cluster has, on which no Pod of a test can run. If there is no Node
// at all, kube-scheduler fails with a reason that no event ends, and tries a Pod again only after a back-off of up to 10 s
// (kubernetes: pkg/scheduler/schedule_one.go, ErrNoNodesAvailable).
func (b *builder) createControlPlaneNode(ctx context.Context) error {
	return client.IgnoreAlreadyExists(b.Workload.Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "control-plane", Labels: map[string]string{kubeadm.ControlPlaneLabel: "", corev1.LabelHostname: "control-plane"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: kubeadm.ControlPlaneLabel, Effect: corev1.TaintEffectNoSchedule}}},
	}))
}
