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

// maxNameLength leaves room for the two random suffixes of six characters each that
// Cluster API appends for the MachineSet and the Machine, so that it does not truncate
// the names of Machines, which must be label values (Cluster API:
// internal/topology/names/names.go).
const maxNameLength = 63 - 2*6

// ContentOf returns a hash of a generated object without its metadata. An API server accepts
// either all objects with the same hash or none.
func ContentOf(object *unstructured.Unstructured) string {
	return hash.Of(hash.Accepted, object.GetAPIVersion(), object.GetKind(), object.Object["spec"])
}

// resourceContentOf returns the same for a scalable resource, with its metadata, which comes from the template.
func resourceContentOf(resource *scalable.Resource) string {
	return hash.Of(hash.Accepted, resource.API())
}

// nameOf returns the name of the scalable resource for an offering, if ending is the resource of that name
// that is being deleted; empty if there is none.
func (g *Generator) nameOf(content string, key catalog.Key, ending types.UID) string {
	if ending != "" {
		content = hash.Of(hash.Resource, content, ending)
	}
	return nameOf(content, g.template.Name, key.InstanceType, key.Zone, key.CapacityType)
}

// labelsOf returns the labels of the scalable resource for an offering.
func (g *Generator) labelsOf(content string, key catalog.Key) map[string]string {
	return lo.Assign(scalable.OfferingLabels(g.template.Name, key), map[string]string{
		clusterv1.ClusterNameLabel: g.cluster.Name,
		v1alpha1.TemplateHashLabel: content,
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

// nameOf returns a readable name that ends in the first digits of a hash.
func nameOf(content string, parts ...string) string {
	name := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, strings.ToLower(strings.Join(lo.Compact(parts), "-")))
	end := hash.InName(content)
	name = name[:min(len(name), maxNameLength-len(end)-1)]
	return strings.Trim(name, "-") + "-" + end
}
