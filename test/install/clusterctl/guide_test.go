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
)

// guide runs commands of a guide: those that are in it, and no others.
type guide struct {
	text string
	// environment of the commands.
	environment []string
	// repository is the folder of what the guide has at published.
	repository string
}

// published is where the guide finds a release.
const published = "https://github.com/karpenter-capi/karpenter-capi/releases/download"

func openGuide(t *testing.T, name string) *guide {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "installation", name))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return &guide{text: string(text), environment: os.Environ()}
}

// run runs a command and returns its output.
func (d *guide) run(t *testing.T, command string) string {
	t.Helper()
	g := NewWithT(t)
	g.Expect(strings.Split(d.text, "\n")).To(ContainElement(command), "a line of the guide")
	t.Logf("$ %s", command)
	bash := exec.Command("bash", "-c", strings.ReplaceAll(command, published, d.repository))
	bash.Env = d.environment
	said, err := bash.CombinedOutput()
	t.Logf("%s", said)
	g.Expect(err).NotTo(HaveOccurred(), "%s: %s", command, said)
	return string(said)
}
