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
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// readFromTemplates are the annotations that Cluster API reads from infrastructure and
// bootstrap templates. As of Cluster API v1.14 there is one, which MachineSets read from
// bootstrap templates (core/reconcilers/machineset/machineset_preflight.go,
// skippedPreflightChecks). Annotations in spec.template of a template are not meant: they
// are part of its content.
var readFromTemplates = []string{clusterv1.MachineSetSkipPreflightChecksAnnotation}

// WithTemplateAnnotations returns the annotations of a generated resource with those that its
// template has now, and without those that it had before. An annotation records the keys of
// the template, to distinguish a key that the template no longer has from one that a user or
// another controller has set.
func WithTemplateAnnotations(current, wanted map[string]string) map[string]string {
	annotated := lo.OmitByKeys(current, recorded(current))
	delete(annotated, v1alpha1.TemplateAnnotationsAnnotation)
	if len(wanted) == 0 {
		return annotated
	}
	return lo.Assign(annotated, wanted, map[string]string{
		v1alpha1.TemplateAnnotationsAnnotation: strings.Join(slices.Sorted(maps.Keys(wanted)), ","),
	})
}

// recorded returns the keys that are recorded as those of a template.
func recorded(annotations map[string]string) []string {
	return strings.Split(annotations[v1alpha1.TemplateAnnotationsAnnotation], ",")
}

// CopiedAnnotations returns the annotations that a copy of a template should have: its
// own, and those of its base that Cluster API reads from templates.
func CopiedAnnotations(own, base map[string]string) map[string]string {
	return lo.Assign(lo.OmitByKeys(own, readFromTemplates), lo.PickByKeys(base, readFromTemplates))
}

// BaseOf returns the name of the template that an object is a copy of; empty if it is not a copy.
func BaseOf(object *unstructured.Unstructured) string {
	annotations := object.GetAnnotations()
	if annotations[clusterv1.TemplateClonedFromGroupKindAnnotation] != object.GroupVersionKind().GroupKind().String() || !scalable.IsTemplateKind(object) {
		return ""
	}
	return annotations[clusterv1.TemplateClonedFromNameAnnotation]
}
