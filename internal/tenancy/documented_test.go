// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The table of reserved fields in docs/security.md is the list of the code. UPDATE=1 writes it.
func TestFieldsAreDocumented(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "security.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- reserved fields: begin -->\n", "<!-- reserved fields: end -->\n"
	before, rest, hasBegin := strings.Cut(string(text), begin)
	got, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		t.Fatalf("%s has no table between %q and %q", path, begin, end)
	}
	table := &strings.Builder{}
	table.WriteString("| kind | fields |\n| --- | --- |\n")
	for _, kind := range slices.Sorted(maps.Keys(fieldsByKind)) {
		fmt.Fprintf(table, "| %s | `%s` |\n", kind, strings.Join(slices.Sorted(slices.Values(fieldsByKind[kind])), "`, `"))
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(before+begin+table.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table.String(), got); diff != "" {
		t.Errorf("the table in %s differs; UPDATE=1 writes it (-code +document):\n%s", path, diff)
	}
}
