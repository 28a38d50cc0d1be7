// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/samber/lo"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// guide is a page of docs/guides. The test runs its commands, in its order, as a user who reads it.
type guide struct {
	blocks []block
	// dir is the working directory, and environment has additional variables.
	dir         string
	environment []string
}

// block is a block of code of a section of a guide.
type block struct {
	section, language, text string
	// file is the name of a file that the text before the block mentions last.
	file string
}

var (
	fence = regexp.MustCompile("(?m)^```([a-z]*)$")
	file  = regexp.MustCompile("`([a-z-]+\\.yaml)`")
	title = regexp.MustCompile(`(?m)^##+ (.*)$`)
)

// openGuide reads a page. Its commands are run for the clusters of a stack.
func openGuide(t *testing.T, s *stack.Stack, name string) *guide {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(root, "docs", "guides", name))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return &guide{blocks: blocksOf(string(text)), dir: t.TempDir(), environment: append(os.Environ(),
		"MANAGEMENT="+s.ManagementKubeconfig(), "WORKLOAD="+s.Kubeconfig(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))}
}

// blocksOf returns the blocks of code of a page.
func blocksOf(page string) []block {
	var blocks []block
	section, mentioned := "", ""
	last := func(matches [][]string, otherwise string) string {
		if len(matches) == 0 {
			return otherwise
		}
		return matches[len(matches)-1][1]
	}
	for fences := fence.FindAllStringSubmatchIndex(page, 2); len(fences) == 2; fences = fence.FindAllStringSubmatchIndex(page, 2) {
		before, open, end := page[:fences[0][0]], fences[0], fences[1]
		section = last(title.FindAllStringSubmatch(before, -1), section)
		mentioned = last(file.FindAllStringSubmatch(before, -1), mentioned)
		blocks = append(blocks, block{section, page[open[2]:open[3]], strings.TrimPrefix(page[open[1]:end[0]], "\n"), mentioned})
		page = page[end[1]:]
	}
	return blocks
}

// yamlLines returns how many lines of YAML a file of the guide has.
func (d *guide) yamlLines(name string) int {
	return lo.SumBy(d.blocks, func(b block) int {
		return lo.Ternary(b.language == "yaml" && b.file == name, strings.Count(b.text, "\n"), 0)
	})
}

// run does what a section describes: it saves files, runs commands, and compares what they print.
func (d *guide) run(ctx context.Context, t *testing.T, section string) {
	t.Helper()
	g := NewWithT(t)
	found := lo.Filter(d.blocks, func(b block, _ int) bool { return b.section == section })
	g.Expect(found).NotTo(BeEmpty(), "blocks of code in section %q", section)
	for i, b := range found {
		switch b.language {
		case "yaml":
			g.Expect(os.WriteFile(filepath.Join(d.dir, b.file), []byte(b.text), 0o600)).To(Succeed())
		case "sh":
			wanted := ""
			if i+1 < len(found) && found[i+1].language == "text" {
				wanted = found[i+1].text
			}
			d.runBlock(ctx, t, strings.Split(strings.TrimSpace(b.text), "\n"), wanted)
		}
	}
}

// runBlock runs commands, and compares what they print with what the guide shows. It repeats a single command that only
// reads, as a user does who waits.
func (d *guide) runBlock(ctx context.Context, t *testing.T, commands []string, wanted string) {
	t.Helper()
	g := NewWithT(t)
	if len(commands) == 1 && strings.Contains(commands[0], " get ") {
		printed := ""
		g.Eventually(ctx, func(g Gomega) {
			var err error
			printed, err = d.command(ctx, commands[0])
			g.Expect(err).NotTo(HaveOccurred(), printed)
			g.Expect(missing(wanted, printed)).To(BeEmpty(), "lines of the guide that %s does not print, but %s", commands[0], printed)
		}).WithTimeout(3 * time.Minute).WithPolling(poll).Should(Succeed())
		t.Logf("$ %s\n%s", commands[0], printed)
		return
	}
	all := ""
	for _, command := range commands {
		printed, err := d.command(ctx, command)
		t.Logf("$ %s\n%s", command, printed)
		g.Expect(err).NotTo(HaveOccurred(), printed)
		all += printed
	}
	g.Expect(missing(wanted, all)).To(BeEmpty(), "lines of the guide that the commands do not print")
}

func (d *guide) command(ctx context.Context, command string) (string, error) {
	shell := exec.CommandContext(ctx, "bash", "-c", command)
	shell.Dir, shell.Env = d.dir, d.environment
	printed, err := shell.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", command, err)
	}
	return string(printed), err
}

// random is what differs from run to run: suffixes of names, hashes, provider IDs and ages.
var random = []*regexp.Regexp{
	regexp.MustCompile(`-[0-9a-f]{8,64}\b`), regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`),
	regexp.MustCompile(`sim://\S+`), regexp.MustCompile(`\b([0-9]+[smh])+\b`),
}

// missing returns the lines of the guide that a command does not print. Spaces and what is random do not count.
func missing(wanted, printed string) []string {
	normal := func(text string) []string {
		return lo.FilterMap(strings.Split(text, "\n"), func(line string, _ int) (string, bool) {
			for _, pattern := range random {
				line = pattern.ReplaceAllString(line, "~")
			}
			return strings.Join(strings.Fields(line), " "), strings.TrimSpace(line) != ""
		})
	}
	return lo.Without(normal(wanted), normal(printed)...)
}
