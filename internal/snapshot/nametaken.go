// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"slices"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
)

// NameTaken is the failure of a claim that names a resource which was generated from something else than its
// Machine would be. Names have only a part of a hash, so two resources can have one name.
const NameTaken failure.Kind = v1alpha1.ReasonNameTaken

// setHash sets the hash of the resource. Before it exists, that is the hash of the oldest claim, for which it is
// created.
func (s *Snapshot) setHash() {
	if s.Resource != nil {
		s.hash = s.Resource.GetLabels()[v1alpha1.TemplateHashLabel]
		return
	}
	if len(s.Claims) > 0 {
		oldest := slices.MinFunc(s.Claims, func(a, b karpv1.NodeClaim) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
		s.hash = oldest.Annotations[v1alpha1.TemplateHashAnnotation]
	}
}

// nameTaken reports whether the resource was generated from something else than the Machine of a claim would be.
// Adopted resources and their claims have no hash.
func (s *Snapshot) nameTaken(claim *karpv1.NodeClaim) bool {
	hash := claim.Annotations[v1alpha1.TemplateHashAnnotation]
	return hash != "" && s.hash != "" && hash != s.hash
}
