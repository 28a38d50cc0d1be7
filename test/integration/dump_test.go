// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

// dump returns all relevant objects, one on each line.
func (e *environment) dump(ctx context.Context) string {
	var b strings.Builder
	claims, machines, nodes := &karpv1.NodeClaimList{}, &clusterv1.MachineList{}, &corev1.NodeList{}
	templates, pools := &v1alpha1.KarpenterMachineTemplateList{}, &infrav1.SimulatedMachinePoolList{}
	for _, list := range []client.ObjectList{claims, machines, nodes, templates, pools} {
		if err := e.client.List(ctx, list); err != nil {
			fmt.Fprintf(&b, "cannot list %T: %v\n", list, err)
		}
	}
	for _, claim := range claims.Items {
		fmt.Fprintf(&b, "NodeClaim %s uid=%s resource=%s id=%s node=%s %s", claim.Name, claim.UID,
			claim.Annotations[v1alpha1.ScalableResourceAnnotation], claim.Status.ProviderID, claim.Status.NodeName, common(&claim))
		for _, condition := range claim.Status.Conditions {
			fmt.Fprintf(&b, " %s=%s(%s)", condition.Type, condition.Status, condition.Reason)
		}
		b.WriteString("\n")
	}
	for _, machine := range machines.Items {
		fmt.Fprintf(&b, "Machine %s claim=%s id=%s node=%s phase=%s leavingSince=%s %s\n", machine.Name, machine.Annotations[v1alpha1.NodeClaimAnnotation],
			machine.Spec.ProviderID, machine.Status.NodeRef.Name, machine.Status.Phase, machine.Annotations[v1alpha1.MarkedForDeletionAtAnnotation], common(&machine))
	}
	resources, err := scalable.List(ctx, e.uncached())
	if err != nil {
		fmt.Fprintln(&b, err)
	}
	for _, resource := range resources {
		all, _ := resource.Machines()
		fmt.Fprintf(&b, "%s replicas=%d/%d since=%s emptySince=%s %s\n", resource, resource.Replicas(), all,
			resource.GetAnnotations()[v1alpha1.ReplicasSetAtAnnotation], resource.GetAnnotations()[v1alpha1.EmptySinceAnnotation], common(resource.API()))
	}
	for _, pool := range pools.Items {
		fmt.Fprintf(&b, "SimulatedMachinePool %s instances=%d %s\n", pool.Name, pool.Status.Replicas, common(&pool))
	}
	for _, node := range nodes.Items {
		fmt.Fprintf(&b, "Node %s id=%s taints=%v %s\n", node.Name, node.Spec.ProviderID, node.Spec.Taints, common(&node))
	}
	for _, template := range templates.Items {
		fmt.Fprintf(&b, "KarpenterMachineTemplate %s %s", template.Name, common(&template))
		for _, condition := range template.Status.Conditions {
			fmt.Fprintf(&b, " %s=%s(%s)", condition.Type, condition.Status, condition.Reason)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "logs: %s\n", e.logs)
	return b.String()
}

func common(object client.Object) string {
	result := fmt.Sprintf("created=%s generation=%d", object.GetCreationTimestamp().Format("15:04:05"), object.GetGeneration())
	if deleted := object.GetDeletionTimestamp(); deleted != nil {
		result += fmt.Sprintf(" deleted=%s finalizers=%v", deleted.Format("15:04:05"), object.GetFinalizers())
	}
	return result
}
