// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"strings"

	"github.com/samber/lo"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
)

// Compare returns why the hashes of a claim are outdated; empty if they are not. The version comes
// first, because patches can use it, and then the kubelet, whose settings are part of the content of
// KubeadmConfigTemplates.
func Compare(claim, present generate.Hashes) cloudprovider.DriftReason {
	switch {
	case claim.Version != "" && claim.Version != present.Version:
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

// differ reports whether two hashes differ. A claim without a hash differs from nothing, and so does a
// hash that cannot be compared.
func differ(claim, present string) bool {
	return claim != "" && canCompare(claim, present) && claim != present
}

// canCompare reports whether equal content would have equal hashes: the hashes have the same version and,
// of templates, the same API version.
func canCompare(claim, present string) bool {
	apiBefore, before := parts(claim)
	apiNow, now := parts(present)
	return hash.SameVersion(before, now) && (apiBefore == "" || apiNow == "" || apiBefore == apiNow)
}

// parts returns the API version of a template before its hash, if there is one, and the hash.
func parts(of string) (apiVersion, content string) {
	if apiVersion, content, found := strings.Cut(of, "/"); found {
		return apiVersion, content
	}
	return "", of
}

// Renew returns the annotations of a claim with present hashes in place of those that cannot be
// compared with them. A claim without a Kubernetes version gets the one that its scalable resource has, or
// else the present one. It returns the same annotations if there is nothing to replace.
func Renew(annotations map[string]string, present generate.Hashes, version string) map[string]string {
	hashes := generate.ParseHashes(annotations[v1alpha1.MachineHashesAnnotation])
	hashes.Version = lo.CoalesceOrEmpty(hashes.Version, version, present.Version)
	renew := func(claim *string, present string) {
		if *claim == "" || !canCompare(*claim, present) {
			*claim = present
		}
	}
	renew(&hashes.Kubelet, present.Kubelet)
	renew(&hashes.Infrastructure, present.Infrastructure)
	renew(&hashes.Bootstrap, present.Bootstrap)
	return lo.Assign(annotations, map[string]string{v1alpha1.MachineHashesAnnotation: hashes.String()})
}

// RenewRevision returns the annotations of a claim with the present revision in place of one that cannot be
// compared with it. If the claim is outdated, its Machine is of an earlier revision, and nothing replaces it. It
// returns the same annotations if there is nothing to replace.
func RenewRevision(annotations map[string]string, present string, outdated bool) map[string]string {
	if stored := annotations[v1alpha1.TemplateRevisionAnnotation]; stored == "" || hash.SameVersion(stored, present) {
		return annotations
	}
	if outdated {
		return lo.OmitByKeys(annotations, []string{v1alpha1.TemplateRevisionAnnotation})
	}
	return lo.Assign(annotations, map[string]string{v1alpha1.TemplateRevisionAnnotation: present})
}
