// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var docs = filepath.Join("..", "..", "..", "docs")

// readDocuments returns the two pages with tables.
func readDocuments(t *testing.T) []string {
	t.Helper()
	var texts []string
	for _, file := range []string{"benchmarks.md", filepath.Join("design", "benchmarks.md")} {
		text, err := os.ReadFile(filepath.Join(docs, file))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// The documents of the repository have all parts, and keep what is written by hand.
func TestDocuments(t *testing.T) {
	documents := readDocuments(t)
	parts := documentParts(newReport(nil), "a machine")
	for i := range parts {
		parts[i].content = "CONTENT"
	}
	if err := replaceParts(documents, parts); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(documents, "")
	if got := strings.Count(all, "\n\nCONTENT\n\n"); got != len(parts) {
		t.Errorf("got %d parts, want %d", got, len(parts))
	}
	for _, want := range []string{"# Benchmarks", "make bench", "## Profiles: our largest costs"} {
		if !strings.Contains(all, want) {
			t.Errorf("the documents lack %q", want)
		}
	}
	if err := replaceParts(documents, []part{{name: "unknown"}}); err == nil {
		t.Error("got no error for a part that no document has")
	}
}

// The tables in the documents are those of the stored results.
func TestDocumentsHaveTheResults(t *testing.T) {
	results, err := load(filepath.Join(docs, "design", "benchmarks.json"))
	if err != nil || len(results) == 0 {
		t.Fatalf("got %d results and %v", len(results), err)
	}
	all := strings.Join(readDocuments(t), "")
	for _, part := range documentParts(newReport(results), "") {
		if !strings.Contains(all, strings.TrimSpace(part.content)) {
			t.Errorf("the part %q is not that of docs/design/benchmarks.json: run make bench BENCH_FLAGS=-stored", part.name)
		}
	}
}

// The pictures are drawn from the results, and not without them.
func TestPictures(t *testing.T) {
	results := slices.Concat(runsOf(kwok.name, 10, 1), runsOf(kwok.name, 200, 20), runsOf(operator.name, 10, 2), runsOf(operator.name, 200, 30))
	way := runsOf(operator.name, paced.n, 1)
	way[0].Every, way[0].Steps = paced.every, []step{{podToClaim, distribution{P50: 1.5}}, {claimToReplicas, distribution{P50: 0.25}}}
	for name, tc := range map[string]struct {
		results []result
		want    map[string]string // by the file: what it contains
	}{
		"no results":  {},
		"all results": {results: append(results, way...), want: map[string]string{wayPicture: claimToReplicas + "  0.25 s", costPicture: "Karpenter with kwok"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := drawPictures(folder, newReport(tc.results)); err != nil {
				t.Fatal(err)
			}
			files, err := os.ReadDir(folder)
			if err != nil || len(files) != len(tc.want) {
				t.Fatalf("got %v and %v, want %d pictures", files, err, len(tc.want))
			}
			for file, want := range tc.want {
				svg, err := os.ReadFile(filepath.Join(folder, file))
				if err != nil || !strings.Contains(html.UnescapeString(string(svg)), want) {
					t.Errorf("%s lacks %q (%v)", file, want, err)
				}
			}
		})
	}
}
