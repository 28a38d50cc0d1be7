// SPDX-License-Identifier: Apache-2.0

// Command language finds phrases that technical documentation does not use, and prints what
// to write instead: in comments and strings of Go code, in Markdown outside of code, and in
// YAML files, Makefiles, shell scripts and chart templates.
//
//	language [-summary] [PATHSPEC...]
//
// It reads the files that git knows or would add below the current folder, and fails if
// it finds a phrase. rules.go has the phrases. This folder is excluded, because the rules
// and their tests contain all of them.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// excluded is this folder, from the root of the repository.
const excluded = "hack/language/"

func main() {
	summary := flag.Bool("summary", false, "print only how many phrases each top-level folder has")
	flag.Parse()
	count, err := run(".", flag.Args(), *summary, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "language:", err)
		os.Exit(1)
	}
	if count > 0 {
		fmt.Fprintf(os.Stderr, "%d phrases to replace: see the section Language of CONTRIBUTING.md.\n", count)
		os.Exit(1)
	}
}

// run checks the files in a folder that match the pathspecs, prints what it finds, and
// returns the number of findings.
func run(dir string, pathspecs []string, summary bool, out io.Writer) (int, error) {
	names, err := list(dir, pathspecs)
	if err != nil {
		return 0, err
	}
	var all []finding
	for _, name := range names {
		found, err := check(dir, name)
		if err != nil {
			return 0, err
		}
		all = append(all, found...)
	}
	lines := make([]string, 0, len(all))
	for _, f := range all {
		lines = append(lines, f.String())
	}
	if summary {
		lines = perFolder(all)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

// list returns the files below the folder that git knows or would add.
func list(dir string, pathspecs []string) ([]string, error) {
	args := append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "--"}, pathspecs...)
	git := exec.Command("git", args...)
	git.Dir, git.Stderr = dir, os.Stderr
	output, err := git.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var names []string
	for _, name := range strings.Split(string(output), "\x00") {
		if name != "" && !strings.HasPrefix(name, excluded) {
			names = append(names, name)
		}
	}
	return names, nil
}

// check returns the findings in one file.
func check(dir, name string) ([]finding, error) {
	read := readerOf(name)
	if read == nil {
		return nil, nil
	}
	content, err := os.ReadFile(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		return nil, nil // It is deleted, but git still lists it.
	}
	if err != nil {
		return nil, err
	}
	passages, err := read(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var all []finding
	for _, p := range passages {
		for _, found := range p.findings() {
			found.file = name
			all = append(all, found)
		}
	}
	slices.SortStableFunc(all, func(a, b finding) int { return a.line - b.line })
	return all, nil
}
