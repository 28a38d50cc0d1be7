// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The commands to install and upgrade, in README.md and on the page about upgrades, are those of the guides, which test/install
// runs.
func TestPagesHaveCommandsOfGuides(t *testing.T) {
	read := func(path string) string {
		content, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	tested := strings.Split(read("docs/installation/helm.md")+"\n"+read("docs/installation/clusterctl.md"), "\n")
	for page, sections := range map[string][]string{"README.md": {"Install"}, "docs/upgrade.md": {"With Helm", "With clusterctl"}} {
		for _, section := range sections {
			_, text, _ := strings.Cut(read(page), "\n## "+section+"\n")
			text, _, _ = strings.Cut(text, "\n## ")
			commands := 0
			for i, block := range strings.Split(text, "```") {
				if i%2 == 0 {
					continue // text between blocks
				}
				for _, command := range strings.Split(strings.TrimSpace(strings.TrimPrefix(block, "sh\n")), "\n") {
					commands++
					if !slices.Contains(tested, command) {
						t.Errorf("%s: no guide has the command %q", page, command)
					}
				}
			}
			if commands == 0 {
				t.Errorf("%s has no commands in the section %s", page, section)
			}
		}
	}
}
