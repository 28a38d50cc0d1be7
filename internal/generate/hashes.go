// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
)

// HashVersion is the version of the way in which Hashes are computed. Change it together with that:
// claims with hashes of another version get present ones, and do not drift.
const HashVersion = "v2"

// Hashes are of what shapes the Machines of one offering, separately for each cause of drift. Prices,
// names, labels, annotations, deletion timeouts and readiness gates are not part of them.
type Hashes struct {
	// Version is the Kubernetes version itself; empty if Machines get none.
	Version string
	// Kubelet is a hash of the kubelet's configuration for the instance type.
	Kubelet string
	// Infrastructure and Bootstrap are hashes of the content of the templates, after patches. The
	// API version of the template comes before a slash: hashes of two API versions cannot be
	// compared, because the same content can look different.
	Infrastructure, Bootstrap string
}

// hashesOf returns the hashes for an offering. The bootstrap template is nil if Machines use a Secret.
func (g *Generator) hashesOf(offering *catalog.Offering, kubelet *v1alpha1.KubeletConfiguration, infrastructure, bootstrap *unstructured.Unstructured) Hashes {
	content := func(object *unstructured.Unstructured, more ...any) string {
		kind := object.GroupVersionKind()
		return kind.Version + "/" + HashOf(append(more, kind.GroupKind().String(), object.Object["spec"])...)
	}
	hashes := Hashes{
		Version:        g.version.Name,
		Kubelet:        HashOf(kubelet),
		Infrastructure: content(infrastructure, g.kind.Name(), offering.FailureDomain),
		Bootstrap:      HashOf(lo.FromPtr(g.template.Spec.Template.Spec.Bootstrap.DataSecretName)),
	}
	if bootstrap != nil {
		hashes.Bootstrap = content(bootstrap)
	}
	return hashes
}

// String returns the hashes in the form of an annotation, which ParseHashes reads.
func (h Hashes) String() string {
	parts := map[string]string{"version": h.Version, "kubelet": h.Kubelet, "infrastructure": h.Infrastructure, "bootstrap": h.Bootstrap}
	return strings.Join(lo.FilterMap(slices.Sorted(maps.Keys(parts)), func(key string, _ int) (string, bool) {
		return key + "=" + parts[key], parts[key] != ""
	}), ",")
}

// ParseHashes reads the annotation of a claim. It ignores what it does not know.
func ParseHashes(annotation string) Hashes {
	parts := map[string]string{}
	for part := range strings.SplitSeq(annotation, ",") {
		key, value, _ := strings.Cut(part, "=")
		parts[key] = value
	}
	return Hashes{Version: parts["version"], Kubelet: parts["kubelet"], Infrastructure: parts["infrastructure"], Bootstrap: parts["bootstrap"]}
}

// rolled returns the part of a Machine's spec for whose change Cluster API would replace Machines
// (Cluster API: core/reconcilers/machinedeployment/mdutil/util.go,
// MachineTemplateDeepCopyRolloutFields). The rest is changed in place, see InPlace.
func rolled(machine clusterv1.MachineSpec) clusterv1.MachineSpec {
	machine.MinReadySeconds, machine.ReadinessGates, machine.Deletion = nil, nil, clusterv1.MachineDeletionSpec{}
	return machine
}
