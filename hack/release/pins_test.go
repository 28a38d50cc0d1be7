// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The images and actions that build and publish must not change without a commit here.
func TestPins(t *testing.T) {
	for _, tc := range []struct {
		files        string
		uses, pinned string
	}{
		{"Dockerfile", `(?m)^FROM .*$`, `@sha256:[0-9a-f]{64}( AS \w+)?$|^FROM scratch$`},
		{".devcontainer/devcontainer.json", `"image": .*`, `@sha256:[0-9a-f]{64}",$`},
		{".github/workflows/*.yaml", `uses: .*`, `@[0-9a-f]{40} # v\d+\.\d+\.\d+$|^uses: \./`},
		{".github/actions/*/action.yaml", `uses: .*`, `@[0-9a-f]{40} # v\d+\.\d+\.\d+$`},
	} {
		files, err := filepath.Glob(filepath.Join("..", "..", tc.files))
		if err != nil || len(files) == 0 {
			t.Fatalf("no file is named %s: %v", tc.files, err)
		}
		for _, file := range files {
			for _, line := range regexp.MustCompile(tc.uses).FindAllString(text(t, file), -1) {
				if !regexp.MustCompile(tc.pinned).MatchString(line) {
					t.Errorf("%s: not pinned: %s", file, line)
				}
			}
		}
	}
}

// The development container has the Go of the image that compiles the operator.
func TestOneImageOfGo(t *testing.T) {
	aGo := regexp.MustCompile(`\S*/golang:[^"\s]+`)
	builder, container := aGo.FindString(text(t, "../../Dockerfile")), aGo.FindString(text(t, "../../.devcontainer/devcontainer.json"))
	if container = strings.Trim(container, `"`); builder == "" || builder != container {
		t.Errorf("the Dockerfile has the image %s, and the development container %s", builder, container)
	}
}

// GitHub runs, in jobs side by side, each target that .ci/run runs in turn.
func TestJobsRunAllTargets(t *testing.T) {
	targets := regexp.MustCompile(`(?m)^\s*run make (\S+)$`).FindAllStringSubmatch(text(t, "../../.ci/run"), -1)
	if len(targets) == 0 {
		t.Fatal(".ci/run runs no target")
	}
	jobs := regexp.MustCompile(`target: \[(.*)\]`).FindStringSubmatch(text(t, "../../.github/workflows/ci.yaml"))
	if jobs == nil {
		t.Fatal("ci.yaml has no jobs for targets")
	}
	for _, target := range targets {
		if !strings.Contains(", "+jobs[1]+",", ", "+target[1]+",") {
			t.Errorf("no job of ci.yaml runs make %s", target[1])
		}
	}
}

// GitHub asks those for a review who approve according to OWNERS.
func TestCodeOwners(t *testing.T) {
	approvers := regexp.MustCompile(`approvers:\n- (\S+)\n\n`).FindStringSubmatch(text(t, "../../OWNERS"))
	if approvers == nil {
		t.Fatal("OWNERS does not have one approver")
	}
	if want := "\n* @karpenter-capi/" + approvers[1] + "\n"; !strings.HasSuffix(text(t, "../../.github/CODEOWNERS"), want) {
		t.Errorf("CODEOWNERS does not end with %q", want)
	}
}

func text(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
