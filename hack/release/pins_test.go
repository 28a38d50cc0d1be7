// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The images and actions that build and publish must not change without a commit here.
func TestPins(t *testing.T) {
	root := filepath.Join("..", "..")
	workflows, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yaml"))
	if err != nil || len(workflows) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	for _, tc := range []struct {
		files        []string
		uses, pinned string
	}{
		{[]string{filepath.Join(root, "Dockerfile")}, `(?m)^FROM .*$`, `@sha256:[0-9a-f]{64}( AS \w+)?$|^FROM scratch$`},
		{workflows, `(?m)uses: .*$`, `@[0-9a-f]{40} # v\d+\.\d+\.\d+$`},
	} {
		for _, file := range tc.files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range regexp.MustCompile(tc.uses).FindAllString(string(content), -1) {
				if !regexp.MustCompile(tc.pinned).MatchString(line) {
					t.Errorf("%s: not pinned: %s", file, line)
				}
			}
		}
	}
}
