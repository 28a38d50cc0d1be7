// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// Source is the source of a version of the operator.
type Source struct {
	// Dir is the folder with the files of the repository.
	Dir string
	// Binary is the binary of the operator.
	Binary string
}

// Chart returns the folder of a chart.
func (s Source) Chart(name string) string { return filepath.Join(s.Dir, "charts", name) }

// ThisSource returns the source of the tested version.
func ThisSource() Source {
	return Source{Dir: charts.Root(), Binary: filepath.Join(Binaries(), Binary)}
}

// recorded is the commit from which the operator is upgraded as long as no version has a tag.
const recorded = "2b7340e3"

// PreviousSource returns the source of the last tagged version before this one, or of the recorded commit.
func PreviousSource(t *testing.T) Source {
	t.Helper()
	describe := exec.Command("git", "describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD^")
	describe.Dir = charts.Root()
	version := recorded
	if tag, err := describe.Output(); err == nil {
		version = strings.TrimSpace(string(tag))
	}
	t.Logf("the operator is upgraded from %s", version)
	previous := Source{Dir: t.TempDir()}
	previous.Binary = filepath.Join(previous.Dir, "bin", Binary)
	command := exec.Command("bash", "-euo", "pipefail", "-c",
		`git archive "$1" | tar -x -C "$2"; cd "$2"; go build -trimpath -o "$3" ./cmd`, "bash", version, previous.Dir, previous.Binary)
	command.Dir, command.Env = charts.Root(), append(os.Environ(), "GOTOOLCHAIN=auto")
	said, err := command.CombinedOutput()
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred(), "%s", said)
	return previous
}
