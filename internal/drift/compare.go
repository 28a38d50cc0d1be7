// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"strings"

	"github.com/samber/lo"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
)

// Compare returns why the hashes of a claim are outdated; empty if they are not. The version comes
// first, because patches can use it, and then the kubelet, whose settings are part of the content of
// KubeadmConfigTemplates.
func Compare(claim, present generate.Hashes) cloudprovider.DriftReason {
	switch {
	case differ(claim.Version, present.Version):
		return v1alpha1.DriftVersion
	case differ(claim.Kubelet, present.Kubelet):
		return v1alpha1.DriftKubelet
	case differ(claim.Infrastructure, present.Infrastructure):
		return v1alpha1.DriftInfrastructure
	case differ(claim.Bootstrap, present.Bootstrap):
		return v1alpha1.DriftBootstrap
	}
	return ""
}

// differ reports whether two hashes differ. A claim without a hash differs from nothing, and hashes
// of two API versions cannot be compared.
func differ(claim, present string) bool {
	return claim != "" && canCompare(claim, present) && claim != present
}

func canCompare(claim, present string) bool {
	before, _, versioned := strings.Cut(claim, "/")
	now, _, isNow := strings.Cut(present, "/")
	return !versioned || !isNow || before == now
}

// Renew returns the annotations of a claim with present hashes in place of those that cannot be
// compared with them. With hashes of another version, that is all of them except for the Kubernetes
// version, which the claim's scalable resource has. It returns the same annotations if there are
// none.
func Renew(annotations map[string]string, present generate.Hashes, version string) map[string]string {
	hashes := generate.ParseHashes(annotations[v1alpha1.MachineHashesAnnotation])
	if annotations[v1alpha1.MachineHashVersionAnnotation] != generate.HashVersion {
		hashes = generate.Hashes{Version: version}
	}
	renew := func(claim *string, present string) {
		if *claim == "" || !canCompare(*claim, present) {
			*claim = present
		}
	}
	renew(&hashes.Version, present.Version)
	renew(&hashes.Kubelet, present.Kubelet)
	renew(&hashes.Infrastructure, present.Infrastructure)
	renew(&hashes.Bootstrap, present.Bootstrap)
	return lo.Assign(annotations, map[string]string{
		v1alpha1.MachineHashesAnnotation:      hashes.String(),
		v1alpha1.MachineHashVersionAnnotation: generate.HashVersion,
	})
}

// hashesOf returns the hashes of a claim. It returns false if they are of another version.
func hashesOf(claim *karpv1.NodeClaim) (generate.Hashes, bool) {
	return generate.ParseHashes(claim.Annotations[v1alpha1.MachineHashesAnnotation]),
		claim.Annotations[v1alpha1.MachineHashVersionAnnotation] == generate.HashVersion
}
