// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	version = "v0.1.0"
	image   = "registry.example/karpenter-capi:v0.1.0"
)

// build runs build.sh and returns the folder that it writes. The error has its message if it fails.
func build(t *testing.T, version, image string) (out string, err error) {
	t.Helper()
	assets := cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), filepath.Join("..", "..", "bin"))
	kubectl, err := filepath.Abs(filepath.Join(assets, "kubectl"))
	if err != nil {
		t.Fatal(err)
	}
	helm, err := filepath.Abs(filepath.Join("..", "..", "bin", "helm"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kubectl); err != nil {
		t.Fatalf("no kubectl (make test builds it): %v", err)
	}
	if _, err := os.Stat(helm); err != nil {
		helm = ""
	}
	out = t.TempDir()
	command := exec.Command("./build.sh", version, image, out)
	command.Env = append(os.Environ(), "KUBECTL="+kubectl, "HELM="+helm, "GOTOOLCHAIN=auto")
	if said, err := command.CombinedOutput(); err != nil {
		return out, fmt.Errorf("%w: %s", err, said)
	}
	return out, nil
}

// read reads all files of a folder.
func read(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestBuildIsReproducible(t *testing.T) {
	var builds [2]map[string][]byte
	for i := range builds {
		out, err := build(t, version, image)
		if err != nil {
			t.Fatal(err)
		}
		builds[i] = read(t, out)
	}
	for _, name := range []string{"addon-components.yaml", "metadata.yaml", "karpenter-capi-crds.yaml", "karpenter-crds.yaml", "checksums.txt"} {
		if len(builds[0][name]) == 0 {
			t.Errorf("%s does not exist", name)
		}
	}
	var sums strings.Builder
	for name, content := range builds[0] {
		if !bytes.Equal(content, builds[1][name]) {
			t.Errorf("%s differs in the second build", name)
		}
		if sum := fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name); name != "checksums.txt" && !bytes.Contains(builds[0]["checksums.txt"], []byte(sum)) {
			t.Errorf("checksums.txt has no line %q", sum)
		} else if name != "checksums.txt" {
			sums.WriteString(sum)
		}
	}
	if got, want := len(builds[0]["checksums.txt"]), sums.Len(); got != want {
		t.Errorf("checksums.txt names files that do not exist:\n%s", builds[0]["checksums.txt"])
	}
	checkGuide(t, builds[0])
}

// checkGuide checks that the guide to releases lists the files of a release, without the charts if they were not built, and
// without the plugins.
func checkGuide(t *testing.T, files map[string][]byte) {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "contributing", "releasing.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{} // patterns, and whether a file matches
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*`) \\| .* \\|$").FindAllStringSubmatch(string(guide), -1) {
		for pattern := range strings.SplitSeq(row[1], ", ") {
			listed[strings.Trim(pattern, "`")] = false
		}
	}
	for name := range files {
		found := false
		for pattern := range listed {
			if matches, err := path.Match(pattern, name); err != nil {
				t.Fatal(err)
			} else if matches {
				found, listed[pattern] = true, true
			}
		}
		if !found {
			t.Errorf("releasing.md does not list %s", name)
		}
	}
	for pattern, found := range listed {
		if !found && pattern != "*.tgz" && !strings.HasPrefix(pattern, "kubectl-") {
			t.Errorf("releasing.md lists %s, which is no file of a release", pattern)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	for version, want := range map[string]string{
		"":              "is not a version such as v0.1.0",
		"0.1.0":         "is not a version such as v0.1.0",
		"v0.1":          "is not a version such as v0.1.0",
		"3dbad07-dirty": "is not a version such as v0.1.0",
		"v0.99.0":       "metadata.yaml has no release series for v0.99.0",
		"v99.1.0":       "metadata.yaml has no release series for v99.1.0",
	} {
		if _, err := build(t, version, image); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %q: got %v, want %q", version, err, want)
		}
	}
	for _, image := range []string{"", "karpenter-capi:dev", "karpenter-capi/karpenter-capi:dev", "registry.example/karpenter-capi"} {
		if _, err := build(t, version, image); err == nil || !strings.Contains(err.Error(), "clusterctl requires a full image name") {
			t.Errorf("image %q: got %v", image, err)
		}
	}
}

func TestNotes(t *testing.T) {
	notes, err := exec.Command("./notes.sh", version).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, notes)
	}
	if text := string(notes); !strings.HasPrefix(text, "The first version.") || strings.Contains(text, "\n## ") {
		t.Errorf("not the section of %s:\n%s", version, text)
	}
	if _, err := exec.Command("./notes.sh", "v0.99.0").Output(); err == nil {
		t.Error("there are notes for a version that CHANGELOG.md does not have")
	}
}
