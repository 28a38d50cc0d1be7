// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The commands in the section Install of README.md are those of the guides, which test/install runs.
func TestReadmeInstalls(t *testing.T) {
	read := func(path ...string) string {
		content, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	_, section, _ := strings.Cut(read("README.md"), "\n## Install\n")
	section, _, _ = strings.Cut(section, "\n## ")
	tested := strings.Split(read("docs", "installation", "helm.md")+"\n"+read("docs", "installation", "clusterctl.md"), "\n")
	commands := 0
	for i, block := range strings.Split(section, "```") {
		if i%2 == 0 {
			continue // text between blocks
		}
		for _, command := range strings.Split(strings.TrimSpace(strings.TrimPrefix(block, "sh\n")), "\n") {
			commands++
			if !slices.Contains(tested, command) {
				t.Errorf("no guide has the command %q", command)
			}
		}
	}
	if commands == 0 {
		t.Error("there are no commands in the section Install")
	}
}
