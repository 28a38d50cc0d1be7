// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/karpenter-capi/karpenter-capi/test/manifests/charts"
)

// Guide runs only the commands of a page of docs/installation, as one user after another who reads it.
type Guide struct {
	// Text is the text of the page.
	Text string
	// Dir is the working directory of the user.
	Dir string
	// Environment is additional variables for the commands.
	Environment []string
	// local replaces what is published according to the page with what the test has.
	local func(command string) string
}

// OpenGuide opens a page.
func OpenGuide(t *testing.T, name string, local func(command string) string) *Guide {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(charts.Root(), "docs", "installation", name))
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	return &Guide{Text: string(text), Dir: t.TempDir(), local: local}
}

// Version returns the version in the first match of a pattern in the page, which is the pattern's group.
func (d *Guide) Version(t *testing.T, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(d.Text)
	gomega.NewWithT(t).Expect(found).To(gomega.HaveLen(2), "%s in the guide", pattern)
	return found[1]
}

// Command returns the only command of a section that begins with begin and contains all parts.
func (d *Guide) Command(t *testing.T, section, begin string, parts ...string) string {
	t.Helper()
	_, after, _ := strings.Cut(d.Text, "\n## "+section+"\n")
	inSection, _, _ := strings.Cut(after, "\n## ")
	var found []string
	for line := range strings.Lines(inSection) {
		matches := strings.HasPrefix(line, begin+" ")
		for _, part := range parts {
			matches = matches && strings.Contains(line, part)
		}
		if matches {
			found = append(found, strings.TrimSpace(line))
		}
	}
	gomega.NewWithT(t).Expect(found).To(gomega.HaveLen(1), "the lines in %q of the guide that begin with %q and have %q", section, begin, parts)
	return found[0]
}

// Run runs a command of the guide and returns what it prints.
func (d *Guide) Run(ctx context.Context, t *testing.T, kubeconfig, command string) string {
	t.Helper()
	gomega.NewWithT(t).Expect(strings.Split(d.Text, "\n")).To(gomega.ContainElement(command), "a line of the guide")
	return d.Execute(ctx, t, kubeconfig, command)
}

// Execute runs a command that need not be in the guide, as Run does.
func (d *Guide) Execute(ctx context.Context, t *testing.T, kubeconfig, command string) string {
	t.Helper()
	t.Logf("$ %s", command)
	shell := exec.CommandContext(ctx, "bash", "-c", d.local(command))
	shell.Dir = d.Dir
	shell.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+d.Dir, "XDG_CACHE_HOME="+d.Dir, "XDG_CONFIG_HOME="+d.Dir, "XDG_DATA_HOME="+d.Dir,
		"PATH="+Binaries()+":"+os.Getenv("PATH"))
	shell.Env = append(shell.Env, d.Environment...)
	printed, err := shell.CombinedOutput()
	t.Logf("%s", printed)
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred(), string(printed))
	return string(printed)
}

// Binary is the name of the operator's binary.
const Binary = "karpenter-capi"

// Binaries is the folder in which make builds binaries.
func Binaries() string { return filepath.Join(charts.Root(), "bin") }
