// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// setNodesTainted names the Nodes that joined without the taint that Karpenter needs,
// for as long as their NodeClaims are there: once a Node is registered it has the
// taint no more, so what it joined with was noted on its NodeClaim (see package
// registration).
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
	slices.Sort(nodes)
	names := strings.Join(nodes[:min(len(nodes), maxNamed)], ", ")
	if more := len(nodes) - maxNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	conditions.SetFalse(v1alpha1.ConditionNodesTainted, v1alpha1.ReasonTaintMissing, fmt.Sprintf(
		"Nodes have joined without the taint %s:%s, so that Pods could run there too early: let the bootstrap configuration register it with the kubelet. They are %s",
		karpv1.UnregisteredNoExecuteTaint.Key, karpv1.UnregisteredNoExecuteTaint.Effect, names))
	return nil
}
