// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/test/contract"
)

const repository = "../.."

// The page has the results that are in the repository.
func TestPageIsCurrent(t *testing.T) {
	t.Chdir(repository)
	all, err := cells(".")
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	results, others, err := readAll(resultsFolder, all)
	if err != nil {
		t.Fatal(err)
	}
	want, err := page(string(written), contract.Facts, results, others)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(written)); diff != "" {
		t.Errorf("%s is not up to date: run 'make compatibility' (-want +got):\n%s", pageFile, diff)
	}
}

// Results of a version that is no longer tested would stay for ever.
func TestReadAll(t *testing.T) {
	folder := t.TempDir()
	cells := []Cell{{"v1.11.4", "v1.34.4"}, {"v1.14.2", "v1.36.3"}}
	other := &CellResults{Cell: Cell{"v1.11.4", "v1.36.3"}, Suites: map[string]Result{}, Facts: contract.Results{"A": ""}}
	for _, results := range []*CellResults{other, {Cell: cells[1], Suites: map[string]Result{"e2e": {Date: "2026-01-01", Passed: true}}}} {
		if err := results.write(folder); err != nil {
			t.Fatal(err)
		}
	}
	all, others, err := readAll(folder, cells)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || len(all[0].Suites) != 0 || !all[1].Suites["e2e"].Passed {
		t.Errorf("got results %v", all)
	}
	if diff := cmp.Diff([]*CellResults{other}, others); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
	if _, _, err := readAll(folder, cells[1:]); err == nil {
		t.Error("got no error for results of a version that is not tested")
	}
}

func TestCells(t *testing.T) {
	folder := t.TempDir()
	for file, content := range map[string]string{
		"hack/tools/versions.txt":      "# SPDX\nsigs.k8s.io/cluster-api v1.11.4 h1:a=\nsigs.k8s.io/cluster-api v1.9.9 h1:b=\nk8s.io/kubernetes v1.34.4 h1:c=\n",
		"go.mod":                       "require (\n\tsigs.k8s.io/cluster-api v1.14.2\n\tsigs.k8s.io/cluster-api/api v1.0.0\n)\n",
		"hack/tools/kubernetes/go.mod": "require (\n\tk8s.io/kubernetes v1.36.3 // indirect\n)\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := cells(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := []Cell{{"v1.9.9", "v1.34.4"}, {"v1.9.9", "v1.36.3"}, {"v1.11.4", "v1.34.4"}, {"v1.14.2", "v1.34.4"}, {"v1.14.2", "v1.36.3"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

func TestPage(t *testing.T) {
	facts := []contract.Fact{
		{Name: "A", Text: "It is so", Home: "internal/a"},
		{Name: "B", Text: "It is otherwise", Home: "internal/b", Differs: map[string]string{"v1.13": "The operator waits"}},
	}
	all := []*CellResults{
		{Cell: Cell{"v1.12.2", "v1.34.4"}},
		{Cell: Cell{"v1.13.6", "v1.34.4"}, Suites: map[string]Result{contractSuite: {Date: "2026-01-01"}}, Facts: contract.Results{"A": "broken", "B": "broken"}},
		{
			Cell:   Cell{"v1.13.6", "v1.36.3"},
			Suites: map[string]Result{contractSuite: {Date: "2026-01-02", Passed: true}, "e2e": {Date: "2026-01-03"}},
			Facts:  contract.Results{"A": "", "B": "is not so"},
		},
		{Cell: Cell{"v1.14.2", "v1.36.3"}, Suites: map[string]Result{contractSuite: {Date: "2026-01-04"}}, Facts: contract.Results{"A": "", "B": "is not so"}},
	}
	const document = "# Page\n<!-- begin generated: cells -->\n<!-- end generated: cells -->\n<!-- begin generated: facts -->\n<!-- end generated: facts -->\n"
	others := []*CellResults{{
		Cell: Cell{"v1.12.2", "v1.36.3"}, Suites: map[string]Result{contractSuite: {Date: "2026-01-05"}}, Facts: contract.Results{"A": ""},
	}}
	got, err := page(document, facts, all, others)
	if err != nil {
		t.Fatal(err)
	}
	want := `# Page
<!-- begin generated: cells -->

| Cluster API | Kubernetes | facts | end-to-end | integration |
| --- | --- | --- | --- | --- |
| v1.12.2 | v1.34.4 | not yet | not yet | – |
| v1.13.6 | v1.34.4 | **failed** 2026-01-01 | not yet | – |
| v1.13.6 | v1.36.3 | passed 2026-01-02 | **failed** 2026-01-03 | – |
| v1.14.2 | v1.36.3 | **failed** 2026-01-04 | not yet | not yet |

<!-- end generated: cells -->
<!-- begin generated: facts -->

| fact | used by | v1.12.2 | v1.13.6 | v1.14.2 |
| --- | --- | --- | --- | --- |
| last run | | 2026-01-05, Kubernetes v1.36.3 | 2026-01-02, Kubernetes v1.36.3 | 2026-01-04, Kubernetes v1.36.3 |
| It is so | ` + "`internal/a`" + ` | yes | yes | yes |
| It is otherwise | ` + "`internal/b`" + ` | not yet | no (1) | **unexpected** |

1. The operator waits.

<!-- end generated: facts -->
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
}

func TestUnknownCell(t *testing.T) {
	t.Chdir(repository)
	err := run([]string{"run", "-capi", "v1.0.0"})
	if err == nil || !strings.Contains(err.Error(), "hack/tools/versions.txt has the versions") {
		t.Errorf("got error %v", err)
	}
}
