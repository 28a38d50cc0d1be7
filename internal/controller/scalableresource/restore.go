// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// isItsMachine reports whether a Machine that is linked to a claim, which names no scalable
// resource, is the Machine of that claim: they have the same Node or provider ID or, until the claim
// has the ID of a Machine, the same offering.
func isItsMachine(machine *clusterv1.Machine, claim *karpv1.NodeClaim) bool {
	if id := claim.Status.ProviderID; id != "" && id != planner.ProvisionalID(claim.UID) {
		return lifecycle.HasIDOrNodeOf(machine, claim)
	}
	return scalable.OfferingOf(machine) == catalog.KeyOf(claim)
}

// restoreAnnotations restores the annotations that a claim has lost, so that it belongs to the
// scalable resource of its Machine again. A conflict is an error, because no event of a claim
// without these annotations triggers the next reconcile.
func (r *Reconciler) restoreAnnotations(ctx context.Context, snap *decided, machine *clusterv1.Machine, claim *karpv1.NodeClaim) error {
	lost := map[string]string{v1alpha1.TemplateHashAnnotation: machine.Labels[v1alpha1.TemplateHashLabel]}
	// The price and the revision are known if the template still leads to this resource.
	if launch, err := generate.LaunchOfClaim(ctx, r.clusters, r.catalog, claim); err == nil && launch.Resource == snap.Name {
		lost = launch.Annotate(nil)
	}
	return nodeclaims.Restore(ctx, r.clusters.Workload.GetClient(), claim, lo.Assign(lo.OmitByValues(lost, []string{""}), claim.Annotations,
		map[string]string{v1alpha1.ScalableResourceAnnotation: snap.Name}))
}
