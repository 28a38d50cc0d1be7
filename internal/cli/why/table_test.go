// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/hack/generated"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/why"
)

// update is whether the test writes the table.
var update = flag.Bool("update", false, "write the table in docs/troubleshooting.md")

// The table of docs/troubleshooting.md has all rules. go test ./internal/cli/why -update writes it.
func TestTable(t *testing.T) {
	const path = "../../../docs/troubleshooting.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	table, err := why.Table(title)
	if err != nil {
		t.Fatal(err)
	}
	want, err := generated.Replace(string(page), "rules", table)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(page) {
		t.Error("docs/troubleshooting.md lacks changes of the rules: run go test ./internal/cli/why -update")
	}
}

// title returns the heading that a link leads to, or that of the page.
func title(see string) (string, error) {
	path, anchor, _ := strings.Cut(see, "#")
	page, err := os.ReadFile("../../../" + path)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(page)) {
		heading, is := strings.CutPrefix(strings.TrimLeft(strings.TrimSpace(line), "#"), " ")
		if is && strings.HasPrefix(line, "#") && (anchor == "" || strings.ReplaceAll(strings.ToLower(heading), " ", "-") == anchor) {
			return heading, nil
		}
	}
	return "", fmt.Errorf("%s has no heading %q", path, anchor)
}

// Every rule has a name of its own, what is seen, and what to do.
func TestRulesAreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, rule := range why.Rules {
		if names[rule.Name] || rule.Name == "" || rule.Seen == "" || rule.Do == "" || strings.HasSuffix(rule.Do, ".") {
			t.Errorf("rule %q: it needs a name of its own, what is seen, and what to do without a full stop", rule.Name)
		}
		names[rule.Name] = true
	}
}
