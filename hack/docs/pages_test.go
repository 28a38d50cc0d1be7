// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// forContributors are the folders of pages for contributors, who have the repository.
var forContributors = []string{"docs/contributing/", "docs/design/"}

// pages returns the content of all pages of docs, of the charts, and of the root of the repository, by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	root := os.DirFS(repository)
	files, err := fs.Glob(root, "*.md")
	for _, folder := range []string{"docs", "charts"} {
		err = errors.Join(err, fs.WalkDir(root, folder, func(file string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(file, ".md") {
				files = append(files, file)
			}
			return err
		}))
	}
	texts := map[string]string{}
	for _, file := range files {
		content, readErr := fs.ReadFile(root, file)
		err = errors.Join(err, readErr)
		texts[file] = string(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// userPages returns the pages for users, some of whom have only the charts.
func userPages(t *testing.T) map[string]string {
	t.Helper()
	texts := pages(t)
	for page := range texts {
		contributors := slices.ContainsFunc(forContributors, func(folder string) bool { return strings.HasPrefix(page, folder) })
		if contributors || page == "CONTRIBUTING.md" || page == "CHANGELOG.md" {
			delete(texts, page)
		}
	}
	return texts
}
