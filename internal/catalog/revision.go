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

// observedNow returns the capacity that Nodes of the template's current revision report.
func observedNow(template *v1alpha1.KarpenterMachineTemplate) []v1alpha1.ObservedCapacity {
	return learnedNow(template, template.Status.ObservedCapacity, func(o v1alpha1.ObservedCapacity) (string, int32) { return o.Revision, o.Nodes })
}

// devicesNow returns the devices that Nodes of the template's current revision publish.
func devicesNow(template *v1alpha1.KarpenterMachineTemplate) []v1alpha1.ObservedDevices {
	return learnedNow(template, template.Status.ObservedDevices, func(o v1alpha1.ObservedDevices) (string, int32) { return o.Revision, o.Nodes })
}

// learnedNow returns what was learned from Nodes of the template's current revision, without what only a Node has reported that
// no longer exists. While the revision is unknown, because the template is Pending, that is the last one.
func learnedNow[T any](template *v1alpha1.KarpenterMachineTemplate, learned []T, from func(T) (revision string, nodes int32)) []T {
	if len(learned) == 0 {
		return nil
	}
	present, pending := RevisionOf(template), pattern.Pending(template)
	return lo.Filter(learned, func(l T, _ int) bool {
		revision, nodes := from(l)
		return (IsRevision(revision, present) || pending) && nodes > 0
	})
}

// IsRevision reports whether a stored revision is the present one. A revision of another version counts as the present
// one until package machinehash or the next write of the status has renewed it.
func IsRevision(stored, present string) bool {
	return stored == present || stored != "" && !hash.SameVersion(stored, present)
}
