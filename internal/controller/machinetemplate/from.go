// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
)

// waitsForFrom is the message of conditions that depend on a MachineDeployment that cannot be used.
const waitsForFrom = "waits for the MachineDeployment that spec.template.from names: see condition " + v1alpha1.ConditionFromReady

// setFromReady sets what the MachineDeployment has that the template follows, and resolves the template for what
// comes after it. If that MachineDeployment cannot be used, the template is Pending.
func (r *Reconciler) setFromReady(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	conditions, from := template.StatusConditions(), template.Spec.Template.From
	if from == nil {
		template.Status.From = nil
		return conditions.Clear(v1alpha1.ConditionFromReady)
	}
	found, err := r.clusters.Pattern(ctx, template)
	if err != nil {
		return err
	}
	template.Status.From = nil
	if found == nil {
		conditions.SetFalse(v1alpha1.ConditionFromReady, v1alpha1.ReasonReferenceNotFound, r.notFound(from))
		return nil
	}
	if problem := pattern.Problem(found); problem != "" {
		conditions.SetFalse(v1alpha1.ConditionFromReady, v1alpha1.ReasonReferenceUnusable,
			fmt.Sprintf("spec.template.from: MachineDeployment %s %s", client.ObjectKeyFromObject(found), problem))
		return nil
	}
	taken := pattern.Observe(found)
	template.Status.From = &taken.ObservedMachineTemplate
	pattern.Resolve(template, taken)
	conditions.SetTrue(v1alpha1.ConditionFromReady)
	return nil
}

// notFound returns the message for a MachineDeployment that does not exist or belongs to another Cluster.
func (r *Reconciler) notFound(from *v1alpha1.MachineTemplateSource) string {
	if from.MachineDeploymentTopology != "" {
		return fmt.Sprintf("spec.template.from: the topology of Cluster %s has no MachineDeployment %s: add it to spec.topology.workers.machineDeployments of the Cluster, or correct the name", r.clusters.Cluster, from.MachineDeploymentTopology)
	}
	return fmt.Sprintf("spec.template.from: Cluster %s has no MachineDeployment %s: create it, or name one of this Cluster",
		r.clusters.Cluster, types.NamespacedName{Namespace: r.clusters.Cluster.Namespace, Name: from.MachineDeployment})
}
