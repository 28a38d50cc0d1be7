// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// unbounded has the fields of types of other projects, whose markers cannot be changed, and what limits them.
var unbounded = map[string]string{
	"instancetypecatalogs.instanceTypes[].offerings[].capacityFrom[].selector": "metav1.LabelSelector: the API server gets it, and messages with it are cut",
	"instancetypecatalogs.offerings[].capacityFrom[].selector":                 "metav1.LabelSelector: the API server gets it, and messages with it are cut",
	"karpentermachinetemplates.discovery.infrastructureTemplates.selector":     "metav1.LabelSelector: it is compared with labels, and never copied to a status",
	"karpentermachinetemplates.discovery.machineDeployments.selector":          "metav1.LabelSelector: it is compared with labels, and never copied to a status",
	"karpentermachinetemplates.patches[].jsonPatches[].value":                  "apiextensionsv1.JSON: patches generate at most 64 MiB from one base template, see internal/generate",
}

// What a spec can contain has a limit, so that one object can neither fill etcd nor make rules too expensive.
func TestStringsAreBounded(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v, and error %v", files, err)
	}
	met := map[string]bool{}
	for _, file := range files {
		plural := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), v1alpha1.Group+"_"), ".yaml")
		root := readSchema(t, plural)
		checkBounds(t, plural, new(root.Properties["spec"]), "", met)
	}
	for path := range unbounded {
		if !met[path] {
			t.Errorf("%s does not exist, so it needs no exception", path)
		}
	}
}

var (
	boundedKeys   = regexp.MustCompile(`^self\.all\(k, (k\.size\(\) <= \d+|k in \[[^]]+\]\))`)
	boundedValues = regexp.MustCompile(`^self\.all\(k, self\[k\]\.size\(\) <= \d+\)`)
)

// checkBounds checks a field, and all fields in it. values is a rule of the map around it.
func checkBounds(t *testing.T, path string, field *apiextensions.JSONSchemaProps, values string, met map[string]bool) {
	t.Helper()
	if unbounded[path] != "" {
		met[path] = true
		return
	}
	rule := func(form *regexp.Regexp) string {
		for _, validation := range field.XValidations {
			if form.MatchString(validation.Rule) {
				return validation.Rule
			}
		}
		return ""
	}
	switch {
	case field.XIntOrString:
		if !boundedPattern(t, field.Pattern) {
			t.Errorf("%s can be of any length: its pattern must be ^…$ without *, + and {n,}", path)
		}
	case field.Type == "string":
		if field.MaxLength == nil && len(field.Enum) == 0 && field.Format == "" && values == "" {
			t.Errorf("%s can be of any length: set MaxLength or Enum", path)
		}
	case field.Type == "array":
		if field.MaxItems == nil {
			t.Errorf("%s can have any number of items: set MaxItems", path)
		}
		checkBounds(t, path+"[]", field.Items.Schema, "", met)
	case field.AdditionalProperties != nil:
		if field.MaxProperties == nil {
			t.Errorf("%s can have any number of entries: set MaxProperties", path)
		}
		if rule(boundedKeys) == "" {
			t.Errorf("keys of %s can be of any length: add the rule self.all(k, k.size() <= N)", path)
		}
		checkBounds(t, path+".*", field.AdditionalProperties.Schema, rule(boundedValues), met)
	case field.XPreserveUnknownFields != nil || field.Type == "":
		t.Errorf("%s can have any content", path)
	}
	for _, name := range slices.Sorted(maps.Keys(field.Properties)) {
		checkBounds(t, path+"."+name, new(field.Properties[name]), "", met)
	}
}

// boundedPattern reports whether a text that a pattern matches has a greatest length.
func boundedPattern(t *testing.T, pattern string) bool {
	t.Helper()
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	var endless func(e *syntax.Regexp) bool
	endless = func(e *syntax.Regexp) bool {
		return e.Op == syntax.OpStar || e.Op == syntax.OpPlus || e.Op == syntax.OpRepeat && e.Max < 0 || slices.ContainsFunc(e.Sub, endless)
	}
	return strings.HasPrefix(pattern, "^") && strings.HasSuffix(pattern, "$") && !endless(parsed)
}
