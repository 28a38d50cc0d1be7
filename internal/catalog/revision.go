// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
)

// RevisionOf returns a hash of the part of a template's spec that shapes machines of any
// instance type, without what is changed in place. Reports of Nodes of one revision do not apply to Nodes of another, which
// can run other software with other settings.
func RevisionOf(template *v1alpha1.KarpenterMachineTemplate) string {
	machine := template.Spec.Template
	machine.From = nil // what it stands for is in the other fields
	machine.Metadata = v1alpha1.MachineMetadata{}
	machine.Spec.MinReadySeconds, machine.Spec.ReadinessGates, machine.Spec.Deletion = nil, nil, nil
	return hash.Of(hash.Revision, machine, template.Spec.Patches, template.Spec.Kubelet, template.Spec.ScalableResource.Kind)
}

// observedNow returns the capacity that Nodes of the template's current revision report,
// without what only a Node has reported that no longer exists. While the revision is unknown, because the template is
// Pending, that is the last one.
func observedNow(template *v1alpha1.KarpenterMachineTemplate) []v1alpha1.ObservedCapacity {
	if len(template.Status.ObservedCapacity) == 0 {
		return nil
	}
	revision, pending := RevisionOf(template), pattern.Pending(template)
	return lo.Filter(template.Status.ObservedCapacity, func(o v1alpha1.ObservedCapacity, _ int) bool {
		return (IsRevision(o.Revision, revision) || pending) && o.Nodes > 0
	})
}

// devicesNow returns the devices that Nodes of the template's current revision publish, as observedNow does.
func devicesNow(template *v1alpha1.KarpenterMachineTemplate) []v1alpha1.ObservedDevices {
	if len(template.Status.ObservedDevices) == 0 {
		return nil
	}
	revision, pending := RevisionOf(template), pattern.Pending(template)
	return lo.Filter(template.Status.ObservedDevices, func(o v1alpha1.ObservedDevices, _ int) bool {
		return (IsRevision(o.Revision, revision) || pending) && o.Nodes > 0
	})
}

// IsRevision reports whether a stored revision is the present one. A revision of another version counts as the present
// one until package machinehash or the next write of the status has renewed it.
func IsRevision(stored, present string) bool {
	return stored == present || stored != "" && !hash.SameVersion(stored, present)
}
