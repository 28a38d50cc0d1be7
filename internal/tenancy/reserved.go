// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// opens precedes an entry of --reserved-fields that templates can set.
const opens = "-"

// Reserved are the changes of --reserved-fields to the fields and labels that are reserved by default.
type Reserved struct {
	// More are patterns of fields, as KIND.PATH, and labels, as label:KEY, that are reserved, too.
	More []string
	// Open are patterns of those that templates can set.
	Open []string
}

// parseReserved reads the option --reserved-fields.
func parseReserved(option string) (Reserved, error) {
	reserved := Reserved{}
	for _, entry := range entriesOf(option) {
		pattern, isOpen := strings.CutPrefix(entry, opens)
		_, isLabel := strings.CutPrefix(pattern, labelPrefix)
		kind, field, _ := strings.Cut(pattern, ".")
		if !isLabel && (kind == "" || field == "" || strings.ContainsAny(pattern, " /[]")) {
			return Reserved{}, fmt.Errorf("--reserved-fields: expected KIND.FIELD or %sKEY, in which * stands for any characters, or one of these after %s, found %q", labelPrefix, opens, entry)
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return Reserved{}, fmt.Errorf("--reserved-fields: %q: %w", entry, err)
		}
		if isOpen {
			reserved.Open = append(reserved.Open, pattern)
		} else {
			reserved.More = append(reserved.More, pattern)
		}
	}
	return reserved, nil
}

// isReserved reports whether a field or label is reserved, and not opened.
func (r Reserved) isReserved(entry string, byDefault bool) bool {
	is := func(pattern string) bool { return matches(pattern, entry) }
	return (byDefault || slices.ContainsFunc(r.More, is)) && !slices.ContainsFunc(r.Open, is)
}

// fieldsOf returns the reserved fields of a kind, without "Template".
func (r Reserved) fieldsOf(kind string) []string {
	more := lo.FilterMap(r.More, func(pattern string, _ int) (string, bool) {
		of, field, _ := strings.Cut(pattern, ".")
		return field, matches(of, kind) // no kind matches what begins with labelPrefix
	})
	return lo.Filter(append(slices.Clone(fieldsByKind[kind]), more...), func(field string, _ int) bool {
		return r.isReserved(kind+"."+field, true)
	})
}

// changed returns the reserved fields that an object has with other values than its base, by the entry that reserves
// each. Without a field, too, providers decide otherwise: an instance of Google Cloud without serviceAccounts gets the
// default one. So a base decides also by what it does not set.
func (r Reserved) changed(base, object *unstructured.Unstructured) map[string]string {
	kind, isTemplate := strings.CutSuffix(object.GetKind(), clusterv1.TemplateSuffix)
	at := "spec."
	before, after := specOf(base), specOf(object)
	if isTemplate {
		at = "spec.template.spec."
		before, after = machineOf(before), machineOf(after)
	}
	changed := map[string]string{}
	for _, field := range r.fieldsOf(kind) {
		keys := strings.Split(field, ".")
		if !equality.Semantic.DeepEqual(valuesAt(before, keys), valuesAt(after, keys)) {
			changed[kind+"."+field] = at + field
		}
	}
	return changed
}

// machineOf returns the spec of what is made from a template with a spec.
func machineOf(spec map[string]any) map[string]any {
	template, _ := spec["template"].(map[string]any)
	machine, _ := template["spec"].(map[string]any)
	return machine
}

// valuesAt returns the values below keys, in each item of a list on the way.
func valuesAt(value any, keys []string) []any {
	if len(keys) == 0 {
		return []any{value}
	}
	switch value := value.(type) {
	case map[string]any:
		if next, has := value[keys[0]]; has {
			return valuesAt(next, keys[1:])
		}
	case []any:
		return lo.FlatMap(value, func(item any, _ int) []any { return valuesAt(item, keys) })
	}
	return nil
}

// kubeletLabels are the labels with which a kubelet may register its Node in the domains kubernetes.io and k8s.io and
// below, and kubeletDomains the domains in which it may set all (Kubernetes: staging/src/k8s.io/kubelet/pkg/apis/
// well_known_labels.go).
var (
	kubeletLabels = []string{
		"kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/os",
		"beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
		"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
	}
	kubeletDomains = []string{"kubelet.kubernetes.io", "node.kubernetes.io"}
)

// label reports whether a template may not set a label on Machines, which Cluster API copies to Nodes. Pods trust those
// that a kubelet may not set on its own Node, such as the roles of control planes (Kubernetes: plugin/pkg/admission/
// noderestriction/admission.go).
func (r Reserved) label(key string) bool {
	notOfKubelet := isIn(key, "kubernetes.io", "k8s.io") && !isIn(key, kubeletDomains...) && !slices.Contains(kubeletLabels, key)
	return reservedLabel(key) || r.isReserved(labelPrefix+key, notOfKubelet)
}

// opening returns what to do, for messages, if the platform team can open a label.
func (r Reserved) opening(field, key string) string {
	if field != labelsField || reservedLabel(key) {
		return ""
	}
	return fmt.Sprintf(", or add %s%s%s to the operator's --reserved-fields", opens, labelPrefix, key)
}
