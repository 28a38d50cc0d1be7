// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// setNodesTainted names the Nodes that joined without the taint that Karpenter needs, as long
// as their NodeClaims exist. Registered Nodes no longer have the taint, so package
// registration has recorded on their NodeClaims whether they joined with it.
func (r *Reconciler) setNodesTainted(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	claims, err := catalog.Claims(ctx, r.clusters, template)
	if err != nil {
		return err
	}
	var nodes []string
	for i := range claims {
		if node, missing := claims[i].Annotations[v1alpha1.TaintMissingAnnotation]; missing {
			nodes = append(nodes, node)
		}
	}
	conditions := template.StatusConditions()
	if len(nodes) == 0 {
		conditions.SetTrue(v1alpha1.ConditionNodesTainted)
		return nil
	}
	conditions.SetFalse(v1alpha1.ConditionNodesTainted, v1alpha1.ReasonTaintMissing, fmt.Sprintf(
		"Nodes joined without the taint %s:%s, so Pods could run on them before Karpenter registered them: let the bootstrap configuration register Nodes with it. These Nodes are %s",
		karpv1.UnregisteredNoExecuteTaint.Key, karpv1.UnregisteredNoExecuteTaint.Effect, budget.Names(nodes, maxNamed)))
	return nil
}
