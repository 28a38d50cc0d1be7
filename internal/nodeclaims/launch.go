// SPDX-License-Identifier: Apache-2.0

package nodeclaims

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/requeue"
)

// Move, Restore and RenewHashes write what a launch gives to a claim: labels, annotations, capacity.

// Move gives a claim that has no Machine the annotations of another scalable resource of its offering.
func Move(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, annotations map[string]string) error {
	return annotate(ctx, workload, claim, annotations, "changing the scalable resource of", "changed the scalable resource of NodeClaim, because its template has changed")
}

// Restore gives a claim the annotations that it has lost, so that it belongs to the scalable resource of its
// Machine again.
func Restore(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, annotations map[string]string) error {
	return annotate(ctx, workload, claim, annotations, "restoring the annotations of", "restored the annotations of NodeClaim")
}

// RenewHashes gives a claim annotations with present hashes in place of those that cannot be compared.
func RenewHashes(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, annotations map[string]string) error {
	return annotate(ctx, workload, claim, annotations, "renewing the hashes of", "renewed the hashes of NodeClaim, which could not be compared with present ones")
}

func annotate(ctx context.Context, workload client.Client, claim *karpv1.NodeClaim, annotations map[string]string, doing, done string) error {
	changed := claim.DeepCopy()
	changed.Annotations = annotations
	if err := write(ctx, workload, claim, changed, doing); err != nil {
		return err
	}
	log.FromContext(ctx).Info(done, "NodeClaim", claim.Name, "resource", annotations[v1alpha1.ScalableResourceAnnotation])
	return nil
}

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
