// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// repository returns a folder with a git repository that has the files.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if output, err := exec.Command("git", "init", "--quiet", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, output)
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// planted has a bad phrase in each kind of text, and bad phrases where nothing is checked.
var planted = map[string]string{
	"a/a.go": `package a

// A reference that is
// mended is ready.
import "example.com/whoever"

type somebody struct {
	A string ` + "`json:\"whoever\"`" + `
}

var _ = whoever.A + "asks the API server" + ` + "`\nits Machine is\n gone`" + `

/*
Nobody
else.
*/
`,
	"b.md": "# Whoever\n\nA machine could\nnot be had, `whoever`; `let` go, [link](#somebody).\n\n```sh\nwhoever\n```\n\nanew\n",
	"c/c.yaml": `# It could not
# be had.
a: 1 # once more

description: >
  for want
  of
`,
	"Makefile":        "a: ## Tell whether it runs.\n",
	"generated/a.md":  "whoever\n",
	"hack/language/a": "whoever\n",
	"LICENSE":         "whoever\n",
	"go.sum":          "whoever\n",
	".gitignore":      "ignored.md\n",
	"ignored.md":      "whoever\n",
}

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		files   map[string]string
		summary bool
		want    []string
		count   int
	}{
		"planted": {
			files: planted,
			want: []string{
				`Makefile:1: "Tell whether"`,
				`a/a.go:4: "mended"`,
				`a/a.go:11: "asks the API server"`,
				`a/a.go:12: "is gone"`,
				`a/a.go:16: "Nobody else"`,
				`b.md:1: "Whoever"`,
				`b.md:4: "not be had"`,
				`b.md:10: "anew"`,
				`c/c.yaml:1: "not be had"`,
				`c/c.yaml:3: "once more"`,
				`c/c.yaml:6: "for want of"`,
			},
			count: 11,
		},
		"summary": {
			files:   planted,
			summary: true,
			want:    []string{"    4 .", "    4 a", "    3 c"},
			count:   11,
		},
		"nothing to find": {
			files: map[string]string{"a.md": "The Machine no longer exists.\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			count, err := run(repository(t, tc.files), []string{":!generated"}, tc.summary, &out)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				line, _, _ = strings.Cut(strings.TrimRight(line, "\n"), ": write ")
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if count != tc.count {
				t.Errorf("got %d findings, want %d", count, tc.count)
			}
		})
	}
}
