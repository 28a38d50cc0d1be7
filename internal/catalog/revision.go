// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

const revisionLength = 16

// RevisionOf returns a hash of the part of a template's spec that shapes machines of any
// instance type, without what is changed in place. Reports of Nodes of one revision do not apply to Nodes of another, which
// can run other software with other settings.
func RevisionOf(template *v1alpha1.KarpenterMachineTemplate) string {
	machine := template.Spec.Template
	machine.From = nil // what it stands for is in the other fields
	machine.Metadata, machine.ScalableResourceAnnotations = clusterv1.ObjectMeta{}, nil
	machine.Spec.MinReadySeconds, machine.Spec.ReadinessGates, machine.Spec.Deletion = nil, nil, nil
	hash := sha256.New()
	for _, part := range []any{machine, template.Spec.Patches, template.Spec.Kubelet, template.Spec.ScalableResource.Kind} {
		// Encoding these types cannot fail, and writing to a hash never does.
		lo.Must0(json.NewEncoder(hash).Encode(part))
	}
	return hex.EncodeToString(hash.Sum(nil))[:revisionLength]
}

// observedNow returns the capacity that Nodes of the template's current revision report,
// without what only a Node has reported that no longer exists.
func observedNow(template *v1alpha1.KarpenterMachineTemplate) []v1alpha1.ObservedCapacity {
	if len(template.Status.ObservedCapacity) == 0 {
		return nil
	}
	revision := RevisionOf(template)
	return lo.Filter(template.Status.ObservedCapacity, func(o v1alpha1.ObservedCapacity, _ int) bool { return o.Revision == revision && o.Nodes > 0 })
}
