// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// enough is how many objects of a kind are described; the others are most likely in the same state.
const enough = 5

// diagnosis describes the objects that are in a bad state, one line for each.
func (s *story) diagnosis(ctx context.Context) string {
	var text strings.Builder
	for _, part := range []struct {
		kind string
		look func(context.Context) ([]string, error)
	}{
		{"KarpenterMachineTemplates that are not Ready", s.unreadyTemplates},
		{"Pods that are not Running", s.waitingPods},
		{"NodeClaims that are not Ready", s.unreadyClaims},
		{"Machines that are not Running", s.unreadyMachines},
	} {
		found, err := part.look(ctx)
		switch {
		case err != nil:
			fmt.Fprintf(&text, "%s: cannot be listed: %v\n", part.kind, err)
		case len(found) > 0:
			fmt.Fprintf(&text, "%s: %d\n", part.kind, len(found))
			for _, line := range found[:min(enough, len(found))] {
				fmt.Fprintf(&text, "  %s\n", line)
			}
		}
	}
	if text.Len() == 0 {
		return "All objects that exist are in a good state."
	}
	return strings.TrimSpace(text.String())
}

func (s *story) unreadyTemplates(ctx context.Context) (found []string, err error) {
	list := &v1alpha1.KarpenterMachineTemplateList{}
	err = s.Workload.List(ctx, list)
	for i := range list.Items {
		if t := &list.Items[i]; !t.StatusConditions().Root().IsTrue() {
			found = append(found, t.Name+unmet(t.GetConditions()))
		}
	}
	return found, err
}

func (s *story) waitingPods(ctx context.Context) (found []string, err error) {
	list := &corev1.PodList{}
	err = s.Workload.List(ctx, list)
	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodRunning {
			continue
		}
		line := fmt.Sprintf("%s: %s", pod.Name, pod.Status.Phase)
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
				line += ", " + c.Message
			}
		}
		found = append(found, line)
	}
	return found, err
}

func (s *story) unreadyClaims(ctx context.Context) (found []string, err error) {
	list := &karpv1.NodeClaimList{}
	err = s.Workload.List(ctx, list)
	for i := range list.Items {
		if claim := &list.Items[i]; !claim.StatusConditions().Root().IsTrue() {
			found = append(found, fmt.Sprintf("%s (%s)%s", claim.Name, claim.Status.ProviderID, unmet(claim.GetConditions())))
		}
	}
	return found, err
}

func (s *story) unreadyMachines(ctx context.Context) (found []string, err error) {
	list := &clusterv1.MachineList{}
	err = s.Management.List(ctx, list)
	for _, machine := range list.Items {
		if machine.Status.Phase != string(clusterv1.MachinePhaseRunning) {
			found = append(found, fmt.Sprintf("%s: %s, for NodeClaim %q",
				machine.Name, machine.Status.Phase, machine.Annotations[v1alpha1.NodeClaimAnnotation]))
		}
	}
	return found, err
}

// unmet describes the conditions that are not true, without Ready, which only repeats them.
func unmet(conditions []status.Condition) string {
	var text string
	for _, c := range conditions {
		if c.IsFalse() || c.IsUnknown() {
			if c.Type != status.ConditionReady {
				text += fmt.Sprintf("; %s is %s (%s: %s)", c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
	return text
}
