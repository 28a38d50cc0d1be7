// SPDX-License-Identifier: Apache-2.0

package nodeclaims

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// Delete deletes a claim, and never another one of the same name. If the claim no longer exists, there is
// nothing to do.
func Delete(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, reason string) error {
	err := workload.Delete(ctx, claim, client.Preconditions{UID: &claim.UID})
	if requeue.IsChanged(err) {
		return nil // it no longer exists, or another claim has its name
	}
	if err != nil {
		return fmt.Errorf("deleting NodeClaim %s: %w", claim.Name, err)
	}
	log.FromContext(ctx).Info("deleted NodeClaim", "NodeClaim", claim.Name, "reason", reason)
	return nil
}
