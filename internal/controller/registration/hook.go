// SPDX-License-Identifier: Apache-2.0

// Package registration corrects the labels of a NodeClaim and records whether its Node lacks
// the taint, immediately before Karpenter registers the Node. It also corrects the taints of
// registered Nodes.
package registration

import (
	"context"
	"fmt"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	nodeclaimutils "sigs.k8s.io/karpenter/pkg/utils/nodeclaim"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// Hook is one of core's registration hooks. Core persists its changes of a NodeClaim and
// copies them to the Node. It never delays a registration.
type Hook struct {
	clusters *clients.Clusters
	catalog  *catalog.Catalog
}

var _ cloudprovider.NodeLifecycleHook = (*Hook)(nil)

// NewHook returns the hook for the served Cluster.
func NewHook(clusters *clients.Clusters, catalog *catalog.Catalog) *Hook {
	return &Hook{clusters: clusters, catalog: catalog}
}

// Name returns the name of the hook in core's messages.
func (h *Hook) Name() string { return "karpenter-capi" }

// Registered is called before a claim's Node registers.
func (h *Hook) Registered(ctx context.Context, claim *karpv1.NodeClaim) (cloudprovider.NodeLifecycleHookResult, error) {
	if err := h.noteTaint(ctx, claim); err != nil {
		return cloudprovider.NodeLifecycleHookResult{}, err
	}
	return cloudprovider.NodeLifecycleHookResult{}, h.setLabels(ctx, claim)
}

// noteTaint records on the claim whether its Node has joined without the taint that keeps
// Pods away until it is registered. After the registration, no Node has the taint.
func (h *Hook) noteTaint(ctx context.Context, claim *karpv1.NodeClaim) error {
	node, err := nodeclaimutils.NodeForNodeClaim(ctx, h.clusters.Workload.GetClient(), claim)
	if err != nil {
		return fmt.Errorf("getting the Node of NodeClaim %s: %w", claim.Name, err)
	}
	_, registered := node.Labels[karpv1.NodeRegisteredLabelKey]
	tainted := lo.ContainsBy(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.MatchTaint(&karpv1.UnregisteredNoExecuteTaint) })
	if !registered && !tainted {
		claim.Annotations = lo.Assign(claim.Annotations, map[string]string{v1alpha1.TaintMissingAnnotation: node.Name})
	}
	return nil
}

// setLabels gives the claim the labels of its instance type. For labels that core does not
// know from the start, it has chosen any value that the NodePool allows (karpenter:
// pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go,
// resolveCustomLabelsFromRequirements).
func (h *Hook) setLabels(ctx context.Context, claim *karpv1.NodeClaim) error {
	template, err := h.clusters.SharedTemplate(ctx, lo.FromPtr(claim.Spec.NodeClassRef).Name)
	if err != nil || template == nil {
		return err
	}
	labels, keys, known, err := h.catalog.NodeLabels(ctx, template, claim.Labels[corev1.LabelInstanceTypeStable])
	if err != nil || !known {
		return err
	}
	claim.Labels = withLabels(claim.Labels, labels, keys.UnsortedList())
	return nil
}

// withLabels returns labels in which those with the given keys are replaced by the given ones.
func withLabels(labels, given map[string]string, keys []string) map[string]string {
	return lo.Assign(lo.OmitByKeys(labels, keys), lo.PickByKeys(given, keys))
}
