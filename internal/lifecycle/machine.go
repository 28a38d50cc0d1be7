// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// HasNode reports whether a Machine has a Node.
func HasNode(machine *clusterv1.Machine) bool {
	return machine.Status.NodeRef.IsDefined()
}

// HasNodeOf reports whether a Machine has the Node that core has registered for a claim. That Node stays
// the same if a provider changes the provider ID of the Machine.
func HasNodeOf(machine *clusterv1.Machine, claim *karpv1.NodeClaim) bool {
	return HasNode(machine) && machine.Status.NodeRef.Name == claim.Status.NodeName
}

// HasIDOrNodeOf reports whether a Machine has the provider ID or the Node of a claim: a provider can change
// the ID of a Machine that has a Node.
func HasIDOrNodeOf(machine *clusterv1.Machine, claim *karpv1.NodeClaim) bool {
	return machine.Spec.ProviderID != "" && machine.Spec.ProviderID == claim.Status.ProviderID || HasNodeOf(machine, claim)
}
