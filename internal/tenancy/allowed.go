// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Allowed decides what templates may refer to and set.
type Allowed struct {
	// Cluster is the served Cluster.
	Cluster types.NamespacedName
	Rules   Rules
	Own     Own
	// Pattern is the metadata that a template takes from the MachineDeployment that it follows. Users of the
	// management cluster decide it.
	Pattern clusterv1.ObjectMeta
}

// NotAllowed is the error for what a template may not refer to or set. Its message is for the user who has
// written the template, and for the platform team.
type NotAllowed struct {
	// Reason is that of the template's condition.
	Reason  string
	message string
}

// Error returns the message.
func (n NotAllowed) Error() string { return n.message }

func notAllowed(reason, format string, args ...any) error {
	return NotAllowed{Reason: reason, message: fmt.Sprintf(format, args...)}
}

// Base returns an error if templates may not refer to a base template. The caches have none of other Clusters, so the
// check for these is a second one.
func (a Allowed) Base(object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind().GroupKind()
	if other := a.Own.otherCluster(object, a.Cluster); other != "" {
		return notAllowed(v1alpha1.ReasonBaseTemplateNotAllowed, "%s %s belongs to Cluster %s, and the operator serves Cluster %s: name a base template of that Cluster",
			kind.Kind, object.GetName(), other, a.Cluster)
	}
	if ofMachine(object) {
		return notAllowed(v1alpha1.ReasonBaseTemplateNotAllowed, "%s %s was created for a Machine and is no base template: name a base template", kind.Kind, object.GetName())
	}
	if len(a.Rules.BaseTemplates) > 0 {
		if a.Rules.baseNamed(kind, object.GetName()) {
			return nil
		}
		return a.Rules.baseNotAllowed(kind, object.GetName())
	}
	if a.Own.ofControlPlane(object) {
		return notAllowed(v1alpha1.ReasonBaseTemplateNotAllowed, "%s %s is that of the control plane of Cluster %s, whose identity and networks are not for workers: name another base template, or add %[1]s/%[2]s to the operator's --allowed-base-templates",
			kind.Kind, object.GetName(), a.Cluster)
	}
	return nil
}

// Bootstrap returns an error if templates may not use a Secret as bootstrap data. The name can be empty.
func (a Allowed) Bootstrap(secret string) error {
	if secret == "" || a.secret(secret) {
		return nil
	}
	return a.secretNotAllowed("spec.template.spec.bootstrap.dataSecretName", secret, "")
}

// Generated returns an error if an object that is generated from a base template names a Secret that templates
// may not refer to, or if patches have set a field that they may not set. The object can be the base itself.
func (a Allowed) Generated(base, object *unstructured.Unstructured) error {
	for _, reference := range Secrets(specOf(object), a.Cluster.Namespace) {
		if a.secret(reference.Secret) {
			continue
		}
		label := ""
		if slices.Contains(secretsOf(base, a.Cluster.Namespace), reference.Secret) {
			label = fmt.Sprintf(", or give %s %s the label %s=%s", base.GetKind(), base.GetName(), clusterv1.ClusterNameLabel, a.Cluster.Name)
		}
		return a.secretNotAllowed(fmt.Sprintf("%s of %s %s", reference.Path, base.GetKind(), base.GetName()), reference.Secret, label)
	}
	if base == object {
		return nil
	}
	added := lo.OmitByKeys(reservedIn(object, a.Cluster), slices.Collect(maps.Keys(reservedIn(base, a.Cluster))))
	if len(added) > 0 {
		return notAllowed(v1alpha1.ReasonFieldNotAllowed, "patches of %s %s may not set %s, which only the base template can set: remove the patch, or change the base template",
			base.GetKind(), base.GetName(), strings.Join(lo.Uniq(slices.Sorted(maps.Values(added))), ", "))
	}
	if changed := a.Rules.Reserved.changed(base, object); len(changed) > 0 {
		entries := lo.Map(slices.Sorted(maps.Keys(changed)), func(entry string, _ int) string { return opens + entry })
		return notAllowed(v1alpha1.ReasonFieldNotAllowed, "patches of %s %s may not change %s, which only the base template can set: remove the patch, change the base template, or add %s to the operator's --reserved-fields",
			base.GetKind(), base.GetName(), strings.Join(slices.Sorted(maps.Values(changed)), ", "), strings.Join(entries, ","))
	}
	return nil
}

// labelsField is the field of a template with the labels of Machines.
const labelsField = "spec.template.metadata.labels"

// Metadata returns an error if a template sets a label or annotation by which Cluster API, Karpenter or the
// operator decide.
func (a Allowed) Metadata(spec *v1alpha1.KarpenterMachineTemplateSpec) error {
	for _, set := range []struct {
		field         string
		entries, from map[string]string
		reserved      func(string) bool
	}{
		{labelsField, spec.Template.Metadata.LabelStrings(), a.Pattern.Labels, a.Rules.Reserved.label},
		{"spec.template.metadata.annotations", spec.Template.Metadata.Annotations, a.Pattern.Annotations, reservedAnnotation},
		{"spec.scalableResource.annotations", spec.ScalableResource.Annotations, nil, reservedOnResource},
	} {
		for _, key := range slices.Sorted(maps.Keys(set.entries)) {
			value, taken := set.from[key]
			if set.reserved(key) && (!taken || value != set.entries[key]) {
				return notAllowed(v1alpha1.ReasonFieldNotAllowed, "%s may not contain %s, because Kubernetes, Cluster API, Karpenter or the operator decide by it: remove it%s", set.field, key, a.Rules.Reserved.opening(set.field, key))
			}
		}
	}
	return nil
}

// Key returns a text that differs if any decision can differ.
func (a Allowed) Key() string {
	names := func(of sets.Set[Template]) []string {
		return slices.Sorted(slices.Values(lo.Map(of.UnsortedList(), func(t Template, _ int) string { return t.Kind.String() + "/" + t.Name })))
	}
	return fmt.Sprint(names(a.Own.Templates), names(a.Own.ControlPlane), sets.List(a.Own.Secrets), sets.List(a.Own.Labelled), a.Pattern)
}

func (a Allowed) secret(name string) bool {
	return a.Own.Secrets.Has(name) || a.Own.Labelled.Has(name) || a.Rules.secretNamed(name)
}

// secretNotAllowed names no Secrets that are allowed: users who write templates cannot list them.
func (a Allowed) secretNotAllowed(field, secret, more string) error {
	return notAllowed(v1alpha1.ReasonSecretNotAllowed, "%[1]s names Secret %[2]s, but templates of Cluster %[3]s may only refer to Secrets that its own base templates or --allowed-secrets name: name one of these, or add %[2]s to the operator's --allowed-secrets%[4]s",
		field, secret, a.Cluster, more)
}

func secretsOf(object *unstructured.Unstructured, namespace string) []string {
	return lo.Map(Secrets(specOf(object), namespace), func(reference Reference, _ int) string { return reference.Secret })
}

// Adoption returns a NotAllowed error if templates may not use a MachineDeployment that exists: if the management side
// has not given its consent, or if it has base templates that templates may not refer to. That its base templates
// can belong to other Clusters is a matter of the management side.
func (r Rules) Adoption(deployment *clusterv1.MachineDeployment) error {
	if deployment.Annotations[v1alpha1.AdoptableAnnotation] != "true" {
		return notAllowed(v1alpha1.ReasonAdoptionNotAllowed, `templates may not use it, because only a user of the management cluster can allow that: give it the annotation %s: "true", or change the selector`,
			v1alpha1.AdoptableAnnotation)
	}
	if len(r.BaseTemplates) == 0 {
		return nil
	}
	spec := deployment.Spec.Template.Spec
	for _, ref := range []clusterv1.ContractVersionedObjectReference{spec.InfrastructureRef, spec.Bootstrap.ConfigRef} {
		if ref.IsDefined() && !r.baseNamed(ref.GroupKind(), ref.Name) {
			return r.baseNotAllowed(ref.GroupKind(), ref.Name)
		}
	}
	return nil
}

// baseNotAllowed returns the error for a base template that is not in the list.
func (r Rules) baseNotAllowed(kind schema.GroupKind, name string) error {
	return notAllowed(v1alpha1.ReasonBaseTemplateNotAllowed, "%s %s is not among the base templates that templates may refer to (%s): name one of these, or add %[1]s/%[2]s to the operator's --allowed-base-templates",
		kind.Kind, name, r.basesText())
}
