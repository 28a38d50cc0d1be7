// SPDX-License-Identifier: Apache-2.0

package nodeclaims

import (
	"context"

	"github.com/samber/lo"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// NoteRemediation writes which remediation request the operator is about to create for the Machine of a claim, unless the
// claim has that.
func NoteRemediation(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, request string) error {
	if claim.Annotations[v1alpha1.RemediationAnnotation] == request {
		return nil
	}
	changed := claim.DeepCopy()
	changed.Annotations = lo.Assign(changed.Annotations, map[string]string{v1alpha1.RemediationAnnotation: request})
	return write(ctx, workload, claim, changed, "noting the remediation request of")
}

// EndRemediation writes that a claim has no remediation request any more.
func EndRemediation(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim) error {
	changed := claim.DeepCopy()
	delete(changed.Annotations, v1alpha1.RemediationAnnotation)
	return write(ctx, workload, claim, changed, "noting the end of the remediation of")
}
