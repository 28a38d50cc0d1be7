// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	// aRule matches the targets of a rule of a Makefile.
	aRule = regexp.MustCompile(`(?m)^([a-z][\w./ -]*):(?:[^=]|$)`)
	// aSpan matches the arguments of make in a code span, and aCommand those in a script, a workflow, or a block of commands.
	aSpan    = regexp.MustCompile("`make ([^`\n]*)")
	aCommand = regexp.MustCompile(`(?m)(?:^\s*(?:- )?(?:run: |run )?make |\{target: )([^,}\n]*)`)
	// aTarget matches an argument that is a target, and not a variable, a flag, or an expression of a workflow.
	aTarget = regexp.MustCompile(`^[a-z][\w./-]*$`)
)

// Pages, workflows and scripts call only targets that the Makefile has.
func TestTargetsExist(t *testing.T) {
	texts := pages(t)
	for _, pattern := range []string{".github/workflows/*.yaml", ".ci/run", "hack/*/README.md", "test/*/*/README.md", "Makefile", "hack/make/*.mk"} {
		files, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got %v and %v", pattern, files, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(content)
		}
	}
	targets := map[string]bool{}
	for file, text := range texts {
		if filepath.Base(file) == "Makefile" || filepath.Ext(file) == ".mk" {
			for _, rule := range aRule.FindAllStringSubmatch(text, -1) {
				for _, target := range strings.Fields(rule[1]) {
					targets[target] = true
				}
			}
		}
	}
	for file, text := range texts {
		for _, target := range called(text, filepath.Ext(file) == ".md") {
			if !targets[target] {
				t.Errorf("%s: the Makefile has no target %s", file, target)
			}
		}
	}
}

func TestCalled(t *testing.T) {
	for name, tc := range map[string]struct {
		text       string
		isMarkdown bool
		want       []string
	}{
		"a page":     {"Run `make test CAPI=v1.13.6`, or\nmake it.\n```sh\nmake chaos KIND=MachinePool\n```\n", true, []string{"test", "chaos"}},
		"several":    {"`make generate manifests`", true, []string{"generate", "manifests"}},
		"a workflow": {"        - {target: quiet KIND=MachinePool, minutes: 5}\n      - run: make verify\n      - run: make ${{ matrix.target }}\n", false, []string{"quiet", "verify"}},
		"a script":   {"run make test\n\trun make test-e2e # all\n# make 4.3 is old\n", false, []string{"test", "test-e2e"}},
		"a file":     {"make bin/karpenter-kwok -j 2\n", false, []string{"bin/karpenter-kwok"}},
	} {
		if diff := cmp.Diff(tc.want, called(tc.text, tc.isMarkdown)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// called returns the targets that a text calls make with. All of a text that is not Markdown is commands.
func called(text string, isMarkdown bool) []string {
	commands := text
	if isMarkdown {
		commands = ""
		for _, block := range aShellBlock.FindAllStringSubmatch(text, -1) {
			commands += block[1]
		}
	}
	var targets []string
	for _, call := range append(aSpan.FindAllStringSubmatch(text, -1), aCommand.FindAllStringSubmatch(commands, -1)...) {
		for _, word := range strings.Fields(call[1]) {
			if !aTarget.MatchString(word) {
				break
			}
			targets = append(targets, word)
		}
	}
	return targets
}
