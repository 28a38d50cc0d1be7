// SPDX-License-Identifier: Apache-2.0

package nodeclaims

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
)

// write writes the labels and annotations of a claim.
func write(ctx context.Context, workload client.Client, claim, changed *karpv1.NodeClaim, doing string) error {
	err := precondition.Write(ctx, workload, claim, changed, doing)
	if err == nil {
		*claim = *changed
	}
	return err
}

// writeStatus writes the status of a claim.
func writeStatus(ctx context.Context, workload client.Client, claim, changed *karpv1.NodeClaim, doing string) error {
	err := precondition.WriteStatus(ctx, workload, claim, changed, doing)
	if err == nil {
		*claim = *changed
	}
	return err
}
