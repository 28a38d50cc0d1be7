// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
)

// Hashes are of what shapes the Machines of one offering, separately for each cause of drift. Prices,
// names, labels, annotations, deletion timeouts and readiness gates are not part of them. Claims with a hash
// of another version (see package hash) get the present one, and do not drift.
type Hashes struct {
	// Version is the Kubernetes version itself; empty if Machines get none.
	Version string
	// Kubelet is a hash of what the template asks of the kubelets of the instance type.
	Kubelet string
	// Infrastructure and Bootstrap are hashes of the content of the templates, after patches and
	// without what the operator adds, which the kubelet's hash has in an exact form. The
	// API version of the template comes before a slash: hashes of two API versions cannot be
	// compared, because the same content can look different.
	Infrastructure, Bootstrap string
}

// hashesOf returns the hashes for an offering. The bootstrap template is empty if Machines use a Secret.
func (g *Generator) hashesOf(offering *catalog.Offering, kubelet *v1alpha1.KubeletConfiguration, infrastructure *unstructured.Unstructured, bootstrap patched) (Hashes, error) {
	content := func(of hash.Subject, object *unstructured.Unstructured, spec any, more ...any) string {
		kind := object.GroupVersionKind()
		return kind.Version + "/" + hash.Of(of, append(more, kind.GroupKind().String(), spec)...)
	}
	hashes := Hashes{
		Version:        g.version.Name,
		Infrastructure: content(hash.Infrastructure, infrastructure, infrastructure.Object["spec"], g.kind.Name(), offering.FailureDomain),
		Bootstrap:      hash.Of(hash.Bootstrap, lo.FromPtr(g.template.Spec.Template.Spec.Bootstrap.DataSecretName)),
	}
	if bootstrap.object != nil {
		hashes.Bootstrap = content(hash.Bootstrap, bootstrap.object, bootstrap.spec)
	}
	var err error
	hashes.Kubelet, err = g.kubeletHash(kubelet, bootstrap)
	return hashes, err
}

// kubeletHash returns a hash of what the template asks of kubelets, given their configuration for an
// instance type. Without a value for maxPods, that is what the bootstrap template or else the kubelet
// has. It contains the name of a formula and not the values that follow from it: otherwise, a
// corrected capacity would replace all Nodes of its type, for a few MiB.
func (g *Generator) kubeletHash(kubelet *v1alpha1.KubeletConfiguration, bootstrap patched) (string, error) {
	maxPods := strconv.Itoa(int(catalog.MaxPods(kubelet)))
	if b := g.bases[v1alpha1.PatchTargetBootstrap]; b != nil && b.joins && lo.FromPtr(kubelet).MaxPods == nil {
		_, arguments, err := readRegistration(b.object.GroupVersionKind().Version, bootstrap.spec)
		if err != nil {
			return "", err
		}
		if given, _, found := lo.FindLastIndexOf(arguments, argument{name: maxPodsArgument}.sameName); found {
			maxPods = given.value
		}
	}
	asked := lo.FromPtr(g.template.Spec.Kubelet)
	asked.MaxPods = nil
	return hash.Of(hash.Kubelet, maxPods, asked), nil
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
