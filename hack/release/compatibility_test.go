// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table has the tested versions: those of the go.mod files and, for the providers, those of modules.txt.
func TestCompatibility(t *testing.T) {
	read := func(path ...string) string {
		content, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	page := read("docs", "compatibility.md")
	_, table, _ := strings.Cut(page, "| --- |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(strings.TrimSpace(table), "\n")
	latest := rows[len(rows)-1]
	operator := read("go.mod")
	kubernetes := read("hack", "tools", "kubernetes", "go.mod")
	for module, file := range map[string]string{
		"sigs.k8s.io/karpenter": operator, "sigs.k8s.io/cluster-api": operator, "k8s.io/kubernetes": kubernetes,
	} {
		found := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (v\S+)`).FindStringSubmatch(file)
		if found == nil || !strings.Contains(latest, "| "+found[1]+" |") {
			t.Errorf("%s is %v; the last row is %s", module, found, latest)
		}
	}
	for _, line := range strings.Split(read("hack", "crds", "modules.txt"), "\n") {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] != "#" && !strings.Contains(page, "| "+fields[2]+" |") {
			t.Errorf("provider %s: the page does not have %s", fields[0], fields[2])
		}
	}
}
