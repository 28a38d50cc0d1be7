// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	// inCode matches what Markdown shows as it is: blocks and spans of code.
	inCode = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]+`")
	// aLink matches the target of a link in Markdown.
	aLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// aChartLink matches the page that a link in a chart leads to. In NOTES.txt, $docs is the address of the folder docs.
	aChartLink = regexp.MustCompile(`(?:\{\{ \$docs \}\}|github\.com/karpenter-capi/karpenter-capi/blob/[^/\s]+/docs)(/[\w./-]+\.md(?:#[\w-]+)?)`)
	// aPage matches a page of the design in a comment or message of the code.
	aPage = regexp.MustCompile(`\bdocs/design/[\w/-]+\.md(#[\w-]+)?`)
)

// A link of a page, and the name of a page of the design in the code, lead to a file, and to a heading if they name one.
func TestLinksLeadSomewhere(t *testing.T) {
	root := os.DirFS(repository)
	headings := map[string]string{} // by page, one in each line
	check := func(from, target string) {
		file, anchor, _ := strings.Cut(target, "#")
		if file = path.Clean(file); strings.HasPrefix(file, "..") {
			return // a link of the forge
		}
		if _, err := fs.Stat(root, file); err != nil {
			t.Errorf("%s: %s does not exist", from, file)
			return
		}
		if anchor == "" || !strings.HasSuffix(file, ".md") {
			return
		}
		if headings[file] == "" {
			content, _ := fs.ReadFile(root, file)
			headings[file] = "\n"
			for line := range strings.Lines(string(content)) {
				if marks, heading, _ := strings.Cut(strings.TrimSpace(line), " "); marks != "" && strings.Trim(marks, "#") == "" {
					headings[file] += anchorOf(heading) + "\n"
				}
			}
		}
		if !strings.Contains(headings[file], "\n"+anchor+"\n") {
			t.Errorf("%s: %s has no heading #%s", from, file, anchor)
		}
	}
	err := fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		if strings.HasPrefix(file, "charts/") && err == nil && !entry.IsDir() {
			content, err := fs.ReadFile(root, file)
			for _, match := range aChartLink.FindAllStringSubmatch(string(content), -1) {
				check(file, "docs"+match[1])
			}
			if err != nil {
				return err
			}
		}
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (file == "bin" || len(file) > 1 && strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case strings.HasSuffix(file, ".go"):
			content, err := fs.ReadFile(root, file)
			for _, target := range aPage.FindAllString(string(content), -1) {
				check(file, target)
			}
			return err
		case strings.HasSuffix(file, ".md"):
			content, err := fs.ReadFile(root, file)
			for _, match := range aLink.FindAllStringSubmatch(inCode.ReplaceAllString(string(content), ""), -1) {
				target := match[1]
				switch {
				case strings.Contains(target, ":"): // another site
				case strings.HasPrefix(target, "#"):
					check(file, file+target)
				default:
					check(file, path.Join(path.Dir(file), target))
				}
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What a user reads after the installation leads to the guides for the first Nodes. The links of an installed chart lead
// to the pages of its version.
func TestInstallationLeadsToTheFirstNode(t *testing.T) {
	const notes = "charts/karpenter-capi/templates/NOTES.txt"
	for _, file := range []string{notes, "docs/installation/helm.md", "docs/installation/clusterctl.md"} {
		for _, guide := range []string{"first-node", "first-template"} {
			if len(all(t, file, "", `(/guides/`+guide+`\.md)`)) == 0 {
				t.Errorf("%s has no link to the guide %s", file, guide)
			}
		}
	}
	if len(all(t, notes, "", `(blob/main)`)) > 0 || len(all(t, notes, "", `(/blob/%s/docs" .*\.Chart\.AppVersion)`)) == 0 {
		t.Errorf("the links of %s do not lead to the version of the chart", notes)
	}
}
