// SPDX-License-Identifier: Apache-2.0

//go:build install

package clusterctl

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/karpenter-capi/karpenter-capi/test/install"
	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// source is the source of a version of the operator.
type source struct {
	// dir is the folder with the files of the repository.
	dir string
	// binary is the binary of the operator.
	binary string
}

// thisSource returns the source of the tested version.
func thisSource() source {
	return source{dir: charts.Root(), binary: filepath.Join(install.Binaries(), install.Binary)}
}

// previousSource returns the source of the last tagged version before this one. If there is none, the upgrade is one
// from this source to itself.
func previousSource(t *testing.T) source {
	t.Helper()
	this := thisSource()
	describe := exec.Command("git", "describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD^")
	describe.Dir = this.dir
	tag, err := describe.Output()
	if err != nil {
		t.Log("no version has a tag: the operator is upgraded from this one")
		return this
	}
	name := strings.TrimSpace(string(tag))
	t.Logf("the operator is upgraded from %s", name)
	previous := source{dir: t.TempDir()}
	previous.binary = filepath.Join(previous.dir, "bin", install.Binary)
	command := exec.Command("bash", "-euo", "pipefail", "-c",
		`git archive "$1" | tar -x -C "$2"; cd "$2"; go build -trimpath -o "$3" ./cmd`, "bash", name, previous.dir, previous.binary)
	command.Dir, command.Env = this.dir, append(os.Environ(), "GOTOOLCHAIN=auto")
	said, err := command.CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%s", said)
	return previous
}
