// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReplacePart(t *testing.T) {
	const document = "before\n<!-- begin generated: a -->\nold\n<!-- end generated: a -->\nbetween\n" +
		"<!-- begin generated: b -->\n<!-- end generated: b -->\nafter\n"
	want := "before\n<!-- begin generated: a -->\n\nnew\n\n<!-- end generated: a -->\nbetween\n" +
		"<!-- begin generated: b -->\n<!-- end generated: b -->\nafter\n"
	got, err := replacePart(document, "a", "new\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	again, err := replacePart(got, "a", "new\n")
	if err != nil || again != got {
		t.Errorf("a second replacement changed the document: %v\n%s", err, again)
	}
	if _, err := replacePart(document, "c", "new"); err == nil {
		t.Error("got no error for a part that the document lacks")
	}
}

// The document of the repository keeps what is written by hand.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	document := string(text)
	for _, part := range documentParts(newReport(nil), "a machine") {
		if document, err = replacePart(document, part.name, "CONTENT"); err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{"# Benchmarks", "make bench", "\n\nCONTENT\n\n", "## Profiles: our largest costs"} {
		if !strings.Contains(document, want) {
			t.Errorf("the document lacks %q", want)
		}
	}
}
