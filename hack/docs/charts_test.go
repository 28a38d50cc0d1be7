// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Each value of a chart has a description in values.yaml, from which helm-docs writes the list in README.md.
func TestValuesHaveDescriptions(t *testing.T) {
	for _, chart := range []string{"karpenter-capi", "karpenter-capi-crd"} {
		readme := "charts/" + chart + "/README.md"
		if len(all(t, readme, "## Values", "(?m)^- `(\\S+)` \\(default .*\\): \\w")) == 0 {
			t.Errorf("%s lists no values", readme)
		}
		for _, value := range all(t, readme, "## Values", "(?m)^- `(\\S+)` \\(default .*\\): *$") {
			t.Errorf("%s has no description", value)
		}
	}
}

// Artifact Hub shows the example of README.md, which test/manifests/samples checks.
func TestExamplesForArtifactHub(t *testing.T) {
	var want []map[string]any
	for _, block := range all(t, "README.md", "## What you write", "(?s)```yaml\n(.*?)```") {
		for document := range strings.SplitSeq(block, "---\n") {
			want = append(want, decode[map[string]any](t, document))
		}
	}
	chart := decode[struct{ Annotations map[string]string }](t, strings.Join(all(t, "charts/karpenter-capi-crd/Chart.yaml", "", "(?s)(.*)"), ""))
	got := decode[[]map[string]any](t, chart.Annotations["artifacthub.io/crdsExamples"])
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("Chart.yaml (-README.md +Chart.yaml):\n%s", diff)
	}
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var object T
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}
