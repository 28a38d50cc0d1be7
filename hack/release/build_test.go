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

	"sigs.k8s.io/yaml"
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
	command.Env = append(os.Environ(), "KUBECTL="+kubectl, "HELM="+helm, "GOTOOLCHAIN=auto",
		"PLUGIN_PLATFORMS=linux/amd64 windows/amd64", "PATH="+withCompiler(t)+":"+os.Getenv("PATH"))
	if said, err := command.CombinedOutput(); err != nil {
		return out, fmt.Errorf("%w: %s", err, said)
	}
	return out, nil
}

// withCompiler returns a folder with a go command that compiles nothing. To compile the plugin for a platform
// without cgo takes minutes, and make release does it.
func withCompiler(t *testing.T) string {
	t.Helper()
	compiler, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`#!/bin/bash
[[ $1 == build ]] || exec %q "$@"
while (($# > 1)); do
	[[ $1 != -o ]] || echo compiled >"$2"
	shift
done
`, compiler)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
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

// checkGuide checks that the guide to releases lists the files of a release, without the charts if they were not built.
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
		if !found && pattern != "*.tgz" {
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

// The manifest for krew names the archive of each platform with its sum, and the archive has the plugin and the license.
func TestPluginForKrew(t *testing.T) {
	out, err := build(t, version, image)
	if err != nil {
		t.Fatal(err)
	}
	files := read(t, out)
	manifest := struct {
		Spec struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}{}
	if err := yaml.Unmarshal(files["karpenter-capi.yaml"], &manifest); err != nil || len(manifest.Spec.Platforms) != 2 || manifest.Spec.Version != version {
		t.Fatalf("%v: want version %s and two platforms:\n%s", err, version, files["karpenter-capi.yaml"])
	}
	for i, want := range []struct{ os, binary string }{{"linux", "kubectl-karpenter_capi"}, {"windows", "kubectl-karpenter_capi.exe"}} {
		found := manifest.Spec.Platforms[i]
		archive := path.Base(found.URI)
		if sum := fmt.Sprintf("%x", sha256.Sum256(files[archive])); found.SHA256 != sum {
			t.Errorf("the manifest has the sum %s of %s, want %s", found.SHA256, archive, sum)
		}
		if labels := found.Selector.MatchLabels; labels["os"] != want.os || labels["arch"] != "amd64" || found.Bin != want.binary {
			t.Errorf("it has %s for %v, want %s for %s", found.Bin, labels, want.binary, want.os)
		}
		listed, err := exec.Command("tar", "-tzf", filepath.Join(out, archive)).Output()
		if err != nil || !strings.Contains(string(listed), "./"+want.binary+"\n") || !strings.Contains(string(listed), "./LICENSE\n") {
			t.Errorf("%s has %q and %v, want the plugin and the license", archive, listed, err)
		}
	}
}
