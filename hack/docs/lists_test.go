// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	coreoptions "sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/yaml"
)

// A list of a page has exactly what the code or the chart has.
func TestListsAreComplete(t *testing.T) {
	var gates, kinds []string
	for _, gate := range coreoptions.KarpenterFeatureGates {
		gates = append(gates, gate.Name)
	}
	for _, crd := range crds(t, "charts/karpenter-capi-crd/files/*/*.yaml") {
		kinds = append(kinds, crd.Spec.Names.Kind)
	}
	for name, tc := range map[string]struct {
		page, section, pattern string
		want                   []string
	}{
		"alerts": {
			"docs/operations.md", "## Alerts", "`(KarpenterCAPI\\w+)`",
			all(t, "charts/karpenter-capi/templates/prometheusrule.yaml", "", `- alert: (\w+)`),
		},
		"feature gates": {"docs/operations.md", "## Feature gates", "(?m)^\\| `(\\w+)` \\|", gates},
		"flags": {
			"docs/operations.md", "## One binary", "(?m)^\\|.*?`--([a-z-]+)`(?:, `--([a-z-]+)`)? \\|",
			all(t, "internal/operator/options.go", "", `fs\.\w+\((?:&o\.\w+, )?"([a-z-]+)"`),
		},
		"kinds of the chart":  {"charts/karpenter-capi-crd/README.md", "# karpenter-capi-crd", `(?:install |, | and )([A-Z][a-z]+[A-Z]\w+)`, kinds},
		"kinds in Chart.yaml": {"charts/karpenter-capi-crd/Chart.yaml", "", `- kind: (\w+)`, kinds},
	} {
		t.Run(name, func(t *testing.T) {
			sort := cmp.Transformer("sorted", func(list []string) []string { return slices.Sorted(slices.Values(lo.Uniq(list))) })
			if diff := cmp.Diff(tc.want, all(t, tc.page, tc.section, tc.pattern), sort); diff != "" {
				t.Errorf("%s (-code +page):\n%s", tc.page, diff)
			}
		})
	}
}

// Karpenter's default of a feature gate is the one that the page names.
func TestDefaultsOfFeatureGates(t *testing.T) {
	enabled := lo.Filter(coreoptions.KarpenterFeatureGates, func(gate coreoptions.FeatureGate, _ int) bool { return gate.Default })
	if got := all(t, "docs/operations.md", "## Feature gates", `(\w+) is enabled by default, and the others are disabled`); len(enabled) != 1 || !slices.Equal(got, []string{enabled[0].Name}) {
		t.Errorf("the page names %v, and Karpenter enables %v", got, enabled)
	}
}

// The guide describes the fields of its example by the names that they have there. The API server checks the example, in
// test/manifests/samples.
func TestGuideNamesFields(t *testing.T) {
	const guide, section = "docs/guides/first-template.md", "## 2. The catalog and the template"
	keys := all(t, guide, section, `(?:^|[\s{,])(\w+):`)
	named := all(t, guide, section, "(?m)^- `(\\w+)`")
	if len(named) == 0 {
		t.Fatal("the section describes no field")
	}
	for _, name := range named {
		if !slices.Contains(keys, name) {
			t.Errorf("the example has no field %s", name)
		}
	}
}

// all returns the groups of all matches in a section of a file, or in the whole file if the section has no name.
func all(t *testing.T, file, section, pattern string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, file))
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	if section != "" {
		marks, _, _ := strings.Cut(section, " ")
		_, after, found := strings.Cut("\n"+text, "\n"+section+"\n")
		if !found {
			t.Fatalf("%s has no section %q", file, section)
		}
		text, _, _ = strings.Cut(after, "\n"+marks+" ")
	}
	var found []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, lo.Compact(match[1:])...)
	}
	return found
}

func crds(t *testing.T, pattern string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file matches %s: %v", pattern, err)
	}
	return lo.Map(files, func(file string, _ int) *apiextensionsv1.CustomResourceDefinition {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		content, err := os.ReadFile(file)
		if err == nil {
			err = yaml.Unmarshal(content, crd)
		}
		if err != nil {
			t.Fatal(err)
		}
		return crd
	})
}
