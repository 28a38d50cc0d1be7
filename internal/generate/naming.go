// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strings"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/hash"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

const (
	// maxNameLength leaves room for the two random suffixes of six characters each that
	// Cluster API appends for the MachineSet and the Machine, so that it does not truncate
	// the names of Machines, which must be label values (Cluster API:
	// internal/topology/names/names.go).
	maxNameLength = 63 - 2*6
	// hashLength is that of hashes in labels, annotations and the status.
	hashLength = 32
	// nameHashLength is how much of a hash names have. Two names can be equal: see scalable.Differs.
	nameHashLength = 12
)

// HashOf returns a hash of values that shape a Machine. Values of these types have only one
// JSON form: maps are sorted and quantities are canonical.
func HashOf(values ...any) string {
	return hash.Of(values...)[:hashLength]
}

// ContentOf returns a hash of a generated object without its metadata. An API server accepts
// either all objects with the same hash or none.
func ContentOf(object *unstructured.Unstructured) string {
	return HashOf(object.GetAPIVersion(), object.GetKind(), object.Object["spec"])
}

// resourceContentOf returns the same for a scalable resource, with its metadata, which comes from the template.
func resourceContentOf(resource *scalable.Resource) string {
	return HashOf(resource.API())
}

// nameOf returns the name of the scalable resource for an offering, if ending is the resource of that name
// that is being deleted; empty if there is none.
func (g *Generator) nameOf(hash string, key catalog.Key, ending types.UID) string {
	if ending != "" {
		hash = HashOf(hash, ending)
	}
	return nameOf(hash, g.template.Name, key.InstanceType, key.Zone, key.CapacityType)
}

// labelsOf returns the labels of the scalable resource for an offering.
func (g *Generator) labelsOf(hash string, key catalog.Key) map[string]string {
	return lo.Assign(scalable.OfferingLabels(g.template.Name, key), map[string]string{
		clusterv1.ClusterNameLabel: g.cluster.Name,
		v1alpha1.TemplateHashLabel: hash,
	})
}

// metadata returns the metadata of the scalable resource for an offering.
func (g *Generator) metadata(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: g.cluster.Namespace, Name: name, Labels: labels,
		Annotations: lo.Assign(WithTemplateAnnotations(nil, g.template.Spec.ScalableResource.Annotations), map[string]string{
			v1alpha1.InPlaceHashAnnotation: inPlaceHash(g.template),
		}),
	}
}

// nameOf returns a readable name that ends in the first digits of the hash.
func nameOf(hash string, parts ...string) string {
	name := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, strings.ToLower(strings.Join(lo.Compact(parts), "-")))
	hash = hash[:nameHashLength]
	name = name[:min(len(name), maxNameLength-len(hash)-1)]
	return strings.Trim(name, "-") + "-" + hash
}
