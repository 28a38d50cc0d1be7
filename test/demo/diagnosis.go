// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// diagnosis tells what is not as it should be, a line for each object.
func (s *story) diagnosis(ctx context.Context) string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, "  "+fmt.Sprintf(format, args...)) }

	templates := &v1alpha1.KarpenterMachineTemplateList{}
	if err := s.workload.List(ctx, templates); err != nil {
		return "no diagnosis: " + err.Error()
	}
	for i := range templates.Items {
		if ready := templates.Items[i].StatusConditions().Root(); !ready.IsTrue() {
			add("KarpenterMachineTemplate %s is not ready: %s", templates.Items[i].Name, ready.Message)
		}
	}
	pods, claims, machines := &corev1.PodList{}, &karpv1.NodeClaimList{}, &clusterv1.MachineList{}
	_ = s.workload.List(ctx, pods) // what cannot be listed is left out: the first error is what matters
	_ = s.workload.List(ctx, claims)
	_ = s.management.List(ctx, machines)
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodRunning {
			continue
		}
		reason := ""
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				reason = condition.Message
			}
		}
		add("Pod %s is %s: %s", pod.Name, pod.Status.Phase, reason)
	}
	for i := range claims.Items {
		if ready := claims.Items[i].StatusConditions().Root(); !ready.IsTrue() {
			add("NodeClaim %s (%s) is not ready: %s", claims.Items[i].Name, claims.Items[i].Status.ProviderID, ready.Message)
		}
	}
	for _, machine := range machines.Items {
		if machine.Status.Phase != string(clusterv1.MachinePhaseRunning) {
			add("Machine %s is %s, for NodeClaim %q", machine.Name, machine.Status.Phase, machine.Annotations[v1alpha1.NodeClaimAnnotation])
		}
	}
	return strings.Join(lines, "\n")
}
