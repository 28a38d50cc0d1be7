// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// setMachinesProgressing repeats what Cluster API reports for the oldest NodeClaim that waits
// for it (see package nodeclaim). The message omits the number of these NodeClaims, because
// it changes often.
func (r *Reconciler) setMachinesProgressing(ctx context.Context, template *v1alpha1.KarpenterMachineTemplate) error {
	claims, err := catalog.Claims(ctx, r.clusters, template)
	if err != nil {
		return err
	}
	waiting := lo.Filter(claims, func(_ karpv1.NodeClaim, i int) bool {
		return snapshot.NeedsMachine(&claims[i]) && snapshot.IsStalled(&claims[i])
	})
	conditions := template.StatusConditions()
	if len(waiting) == 0 {
		conditions.SetTrue(v1alpha1.ConditionMachinesProgressing)
		return nil
	}
	oldest := lo.MinBy(waiting, func(a, b karpv1.NodeClaim) bool {
		return a.CreationTimestamp.Before(&b.CreationTimestamp) || a.CreationTimestamp.Equal(&b.CreationTimestamp) && a.Name < b.Name
	})
	stall := operator.ConditionOf(&oldest, v1alpha1.ConditionMachineAvailable)
	conditions.SetFalse(v1alpha1.ConditionMachinesProgressing, stall.Reason,
		fmt.Sprintf("NodeClaim %s waits for Cluster API: %s", oldest.Name, stall.Message))
	return nil
}
