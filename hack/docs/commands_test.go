// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	// aShellBlock matches commands in Markdown, in a list or not.
	aShellBlock = regexp.MustCompile("(?ms)^ *```(?:sh|shell|bash)\n(.*?)^ *```$")
	// aScale matches a command that sets the number of the operator's Pods.
	aScale = regexp.MustCompile(`scale deployment \S*karpenter-capi\S* .*--replicas=(\d+)`)
)

// A command for users names no file of the repository, and needs no make, unless the page has got the repository before.
func TestCommandsNeedNoRepository(t *testing.T) {
	for page, text := range userPages(t) {
		for _, problem := range needsRepository(text) {
			t.Errorf("%s: %s: show how to get the repository before, with git clone", page, problem)
		}
	}
}

func TestNeedsRepository(t *testing.T) {
	for name, tc := range map[string]struct {
		page string
		want []string
	}{
		"a file":                   {"```sh\nkubectl apply -f config/fleet/helmrelease.yaml\n```\n", []string{"config/fleet/helmrelease.yaml is a path of the repository"}},
		"a folder, in a list":      {"1. A\n\n   ```sh\n   kubectl apply -k=config/samples/aws/\n   ```\n", []string{"config/samples/aws is a path of the repository"}},
		"make":                     {"```sh\nmake demo\n```\n", []string{"make needs the repository"}},
		"after git clone":          {"```sh\ngit clone https://example.com/x\n```\nNow:\n```sh\nmake demo\nkubectl apply -k config/samples/aws\n```\n", nil},
		"another file":             {"```sh\nkubectl apply -f config/mine.yaml -f https://example.com/config/samples/aws\n```\n", nil},
		"text that is not command": {"`config/samples/aws` and `make demo`\n```yaml\nmake demo\n```\n", nil},
	} {
		if diff := cmp.Diff(tc.want, needsRepository(tc.page)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// needsRepository returns the commands of a page that need the repository before the page has got it.
func needsRepository(page string) []string {
	var problems []string
	for _, block := range aShellBlock.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			if slices.Contains(words, "clone") {
				return problems
			}
			if words[0] == "make" {
				problems = append(problems, "make needs the repository")
			}
			for _, word := range words {
				word = strings.Trim(word[strings.LastIndex(word, "=")+1:], `"'/`)
				if _, err := os.Stat(filepath.Join(repository, word)); err == nil && strings.Contains(word, "/") && !strings.HasPrefix(word, "bin/") {
					problems = append(problems, word+" is a path of the repository")
				}
			}
		}
	}
	return problems
}

// A command that starts the operator again gives it as many Pods as the chart does.
func TestCommandsStartAllReplicas(t *testing.T) {
	want := all(t, "charts/karpenter-capi/values.yaml", "", `(?m)^replicas: (\d+)$`)
	if len(want) != 1 {
		t.Fatalf("the chart has the replicas %v", want)
	}
	found := 0
	for page, text := range userPages(t) {
		for _, scale := range aScale.FindAllStringSubmatch(text, -1) {
			found++
			if scale[1] != "0" && scale[1] != want[0] {
				t.Errorf("%s: %q, but the chart has %s", page, scale[0], want[0])
			}
		}
	}
	if found == 0 {
		t.Error("no page has such a command")
	}
}

// All pages install the same version.
func TestPagesInstallOneVersion(t *testing.T) {
	const readme = "README.md"
	aVersion := regexp.MustCompile(`(?:/charts/\S+ --version |--branch v|/releases/download/v)(\d+\.\d+\.\d+)`)
	texts := userPages(t)
	want := aVersion.FindStringSubmatch(texts[readme])
	if want == nil {
		t.Fatalf("%s installs no version", readme)
	}
	for page, text := range texts {
		_, upgrade, _ := strings.Cut(text, "clusterctl upgrade plan\n") // to the next version
		for _, got := range aVersion.FindAllStringSubmatch(text, -1) {
			if got[1] != want[1] && !strings.Contains(upgrade, got[0]) {
				t.Errorf("%s has %q, and %s has the version %s", page, got[0], readme, want[1])
			}
		}
	}
}

// The page of a cloud names only files of its sample that exist, and fields that they have.
func TestCloudPagesFitTheirSamples(t *testing.T) {
	clouds, err := filepath.Glob(filepath.Join(repository, "docs/clouds/*.md"))
	if err != nil || len(clouds) == 0 {
		t.Fatalf("there are no pages of clouds: %v", err)
	}
	for _, file := range clouds {
		page := "docs/clouds/" + filepath.Base(file)
		sample := "config/samples/" + strings.TrimSuffix(filepath.Base(file), ".md")
		text := userPages(t)[page]
		for _, path := range regexp.MustCompile(`config/samples/[\w./-]+`).FindAllString(text, -1) {
			if _, err := os.Stat(filepath.Join(repository, strings.TrimRight(path, "."))); err != nil {
				t.Errorf("%s: %s does not exist", page, path)
			}
		}
		fields := all(t, page, "## 3. The base templates", "(?m)^\\| `([^`]+)` \\|")
		if len(fields) == 0 {
			t.Errorf("%s: the section describes no fields", page)
		}
		content := ""
		for _, name := range []string{"machines.yaml", "karpentermachinetemplate.yaml"} {
			part, err := os.ReadFile(filepath.Join(repository, sample, name))
			if err != nil {
				t.Fatal(err)
			}
			content += string(part)
		}
		for _, field := range fields {
			if !strings.Contains(content, field) {
				t.Errorf("%s: %s has no %s", page, sample, field)
			}
		}
	}
}
