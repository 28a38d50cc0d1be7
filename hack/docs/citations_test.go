// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// citing are the pages that cite tests, and specs are the folder of the specs that they cite without one.
var citing = []string{"docs/design/known-defects.md", "docs/design/provider-ids.md"}

const specs = "test/integration"

// cited matches a file of tests, a folder, the name of a test, and the text of a spec or a case.
var cited = regexp.MustCompile("`((?:[a-z0-9_]+/)*[a-z0-9_]+_test\\.go)`" +
	"|`((?:api|hack|internal|test)/[a-z0-9_/]+)`" +
	`|\b(Test[A-Z]\w*)|"([^"]+)"`)

func TestCitedTestsExist(t *testing.T) {
	for _, page := range citing {
		content, err := os.ReadFile(filepath.Join(repository, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range citations(repository, string(content)) {
			t.Errorf("%s:%s", page, problem)
		}
	}
}

func TestCitations(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a spec":              {"`lifecycle_test.go`: \"becomes a Node through a scalable resource and a Machine, and is deleted with them\"", ""},
		"a test":              {"`hack/docs`: TestText, \"one two.\"", ""},
		"a test of a file":    {"`hack/docs/checks_test.go`: TestText/x, TestChecks", ""},
		"the next cell":       {"`hack/docs`: TestText | TestText", "1: test/integration has no TestText"},
		"no spec":             {"`lifecycle_test.go`: \"becomes a Pod\"", `1: test/integration/lifecycle_test.go has no "becomes a Pod"`},
		"no file":             {"a\n`paths_test.go`", "2: test/integration/paths_test.go does not exist"},
		"no folder":           {"`hack/dogs`: TestText", "1: hack/dogs does not exist"},
		"a test of elsewhere": {"`hack/docs/checks_test.go`: TestCitations", "1: hack/docs/checks_test.go has no TestCitations"},
	} {
		if got := strings.Join(citations(repository, tc.text), "\n"); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// citations returns what a page cites and the repository lacks, with the number of the line. Tests and specs follow
// the file or folder that has them, in the same cell of a table.
func citations(repository, page string) []string {
	var problems []string
	read := map[string]string{} // tests, by file or folder
	number := 0
	for line := range strings.Lines(page) {
		number++
		for cell := range strings.SplitSeq(line, " | ") {
			place := specs
			for _, match := range cited.FindAllStringSubmatch(cell, -1) {
				file, folder, test, text := match[1], match[2], match[3], match[4]
				switch {
				case file != "" || folder != "":
					place = file + folder
					if file != "" && !strings.Contains(file, "/") {
						place = specs + "/" + file
					}
					if _, err := os.Stat(filepath.Join(repository, place)); err != nil {
						problems = append(problems, fmt.Sprintf("%d: %s does not exist", number, place))
						place = ""
					}
				case place == "": // reported already
				case test != "" && !strings.Contains(testsIn(repository, place, read), "\nfunc "+test+"("):
					problems = append(problems, fmt.Sprintf("%d: %s has no %s", number, place, test))
				case text != "" && !strings.Contains(testsIn(repository, place, read), `"`+text+`"`):
					problems = append(problems, fmt.Sprintf("%d: %s has no %q", number, place, text))
				}
			}
		}
	}
	return problems
}

// testsIn returns the content of a file of tests, or of all such files of a folder. It keeps what it has read.
func testsIn(repository, place string, read map[string]string) string {
	content, known := read[place]
	if known {
		return content
	}
	files := []string{filepath.Join(repository, place)}
	if !strings.HasSuffix(place, ".go") {
		files, _ = filepath.Glob(filepath.Join(repository, place, "*_test.go"))
	}
	for _, file := range files {
		tests, _ := os.ReadFile(file) // a file that does not exist has no tests
		content += string(tests)
	}
	read[place] = content
	return content
}
