// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
	"github.com/karpenter-capi/karpenter-capi/internal/patch"
)

// Revision returns a hash of what the machines of all offerings of the template are generated from: the version, the
// contents of all base templates, the patches and the kubelet. Like Hashes, it has no names. It has nothing of an instance
// type but its base template, so that a change of a catalog does not begin a rollout again.
func (l *Launcher) Revision(ctx context.Context) (string, error) {
	generator, err := l.generator()
	if err != nil {
		return "", err
	}
	types, _, err := l.catalog.Types(ctx, l.template)
	if err != nil {
		return "", err
	}
	return generator.revision(types)
}

func (g *Generator) revision(types []catalog.Type) (string, error) {
	contents := sets.New[string]()
	add := func(object *unstructured.Unstructured) {
		contents.Insert(hash.Of(hash.Rollout, object.GroupVersionKind().GroupKind().String(), object.Object["spec"]))
	}
	for _, target := range slices.Sorted(maps.Keys(g.bases)) {
		add(g.bases[target].object)
	}
	seen := sets.New[clusterv1.ContractVersionedObjectReference]()
	for i := range types {
		for j := range types[i].Offerings {
			offering := &types[i].Offerings[j]
			if offering.InfrastructureRef == nil || seen.Has(*offering.InfrastructureRef) {
				continue
			}
			seen.Insert(*offering.InfrastructureRef)
			object, err := g.infrastructureOf(offering, patch.Variables{})
			if errors.As(err, &UnreadError{}) {
				return "", err
			}
			if err == nil { // otherwise, nothing is launched with the offering
				add(object)
			}
		}
	}
	return hash.Of(hash.Rollout, g.kind.Name(), g.version.Name, lo.FromPtr(g.template.Spec.Template.Spec.Bootstrap.DataSecretName),
		g.template.Spec.Patches, g.template.Spec.Kubelet, sets.List(contents)), nil
}
