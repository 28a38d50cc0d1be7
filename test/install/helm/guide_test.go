// SPDX-License-Identifier: Apache-2.0

//go:build install

package helm

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/karpenter-capi/karpenter-capi/test/charts"
)

// Where the guide installs the charts, under their own names.
const namespace = "karpenter-capi-system"

// published is where the guide has the charts from. The test has them from this repository.
var published = regexp.MustCompile(`oci://ghcr\.io/karpenter-capi/charts/(\S+) --version \S+`)

// guide runs commands of docs/installation/helm.md, as one user after the other who reads a part of it.
type guide struct {
	text string
	// dir is where the user is.
	dir string
}

func openGuide(t *testing.T) *guide {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(charts.Root(), "docs", "installation", "helm.md"))
	if err != nil {
		t.Fatal(err)
	}
	return &guide{text: string(text), dir: t.TempDir()}
}

// write writes the user's values.yaml.
func (d *guide) write(t *testing.T, values charts.Values) {
	t.Helper()
	text, err := json.Marshal(values)
	if err == nil {
		err = os.WriteFile(filepath.Join(d.dir, "values.yaml"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// read returns a file that a command has written.
func (d *guide) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run runs the one command of a section that begins so and has all the parts, and returns what it prints.
func (d *guide) run(ctx context.Context, t *testing.T, kubeconfig, section, begin string, parts ...string) string {
	t.Helper()
	g := NewWithT(t)
	_, after, _ := strings.Cut(d.text, "\n## "+section+"\n")
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
	g.Expect(found).To(HaveLen(1), "the lines in %q of the guide that begin with %q and have %q", section, begin, parts)
	t.Logf("$ %s", found[0])
	command := published.ReplaceAllStringFunc(found[0], func(chart string) string {
		return charts.Chart(published.FindStringSubmatch(chart)[1])
	})
	shell := exec.CommandContext(ctx, "bash", "-c", command)
	shell.Dir = d.dir
	shell.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+d.dir, "XDG_CACHE_HOME="+d.dir, "XDG_CONFIG_HOME="+d.dir, "XDG_DATA_HOME="+d.dir,
		"PATH="+filepath.Join(charts.Root(), "bin")+":"+os.Getenv("PATH"))
	printed, err := shell.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(printed))
	return string(printed)
}
