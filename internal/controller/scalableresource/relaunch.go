// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
)

// relaunch gives a claim without a NodePool the offering that fits now: another one, or its own
// again if that is available again. If no offering fits, the claim keeps what it has, and
// relaunch returns false.
func (r *Reconciler) relaunch(ctx context.Context, claim *karpv1.NodeClaim, failed *failure.Failure, snap *decided) (bool, error) {
	before := withoutOffering(claim)
	next, err := r.cloudProvider.Create(ctx, before)
	if err != nil { // no offering fits now
		return false, r.recordFailure(ctx, claim, failed)
	}
	from, to := catalog.KeyOf(claim), catalog.KeyOf(next)
	next.Labels = lo.Assign(before.Labels, next.Labels)
	err = nodeclaims.Relaunch(ctx, r.clusters.Workload.GetClient(), claim, next,
		fmt.Sprintf("The NodeClaim was relaunched with offering %s, because no machine could be launched with offering %s: %s", to, from, failed.Message))
	if err == nil && next.Annotations[v1alpha1.ScalableResourceAnnotation] == snap.Name {
		err = r.replaceMachine(ctx, claim, snap)
	}
	if err != nil {
		return true, err
	}
	r.recorder.Publish(claimRelaunched(claim, to, from, failed))
	log.FromContext(ctx).Info("relaunched NodeClaim", "NodeClaim", claim.Name, "from", from.String(), "to", to.String(), "reason", failed.Message)
	return true, nil
}

// replaceMachine marks the failed Machine of a claim for deletion, so that the claim gets another.
func (r *Reconciler) replaceMachine(ctx context.Context, claim *karpv1.NodeClaim, snap *decided) error {
	name, served := snap.Plan.Served[claim.UID]
	if !served {
		return nil
	}
	return lifecycle.Mark(ctx, r.clusters.Management.GetClient(), snap.Machines[name], snap.State.Now, true)
}

// withoutOffering returns a claim without the labels of its offering.
func withoutOffering(claim *karpv1.NodeClaim) *karpv1.NodeClaim {
	without := claim.DeepCopy()
	without.Labels = lo.OmitByKeys(without.Labels, catalog.GivenLabels())
	return without
}
