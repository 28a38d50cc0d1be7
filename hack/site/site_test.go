// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

const repository = "../.."

// document is what this test reads from a page of the site.
type document struct {
	ids        map[string]bool
	links      []string
	navigation map[string]bool
}

// The site has a page for each page of docs, each is in the navigation, and each link leads to a file and a heading.
func TestSite(t *testing.T) {
	out := t.TempDir()
	if err := build(repository, out); err != nil {
		t.Fatal(err)
	}
	documents := map[string]*document{}
	files := map[string]bool{}
	err := fs.WalkDir(os.DirFS(out), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[file] = true
		if path.Ext(file) == ".html" {
			documents[file] = read(t, filepath.Join(out, file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	navigation := map[string]bool{}
	for file, document := range documents {
		for _, link := range document.links {
			to, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if to.Scheme != "" {
				continue
			}
			target := file
			if to.Path != "" {
				target = path.Join(path.Dir(file), to.Path)
			}
			if document.navigation[link] {
				navigation[target] = true
			}
			if !files[target] {
				t.Errorf("%s: %s does not exist", file, link)
			} else if to.Fragment != "" && !documents[target].ids[to.Fragment] {
				t.Errorf("%s: %s has no heading", file, link)
			}
		}
	}
	err = fs.WalkDir(os.DirFS(repository), docs, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".md" {
			return err
		}
		html := htmlOf(strings.TrimPrefix(file, docs+"/"))
		if documents[html] == nil {
			t.Errorf("%s has no page", file)
		} else if !navigation[html] {
			t.Errorf("%s is not in the navigation", file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// read reads a page of the site.
func read(t *testing.T, file string) *document {
	t.Helper()
	content, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	root, err := html.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	d := &document{ids: map[string]bool{}, navigation: map[string]bool{}}
	d.add(root, false)
	return d
}

func (d *document) add(node *html.Node, navigation bool) {
	navigation = navigation || node.Type == html.ElementNode && node.Data == "nav"
	for _, attribute := range node.Attr {
		switch attribute.Key {
		case "id":
			d.ids[attribute.Val] = true
		case "href", "src":
			d.links = append(d.links, attribute.Val)
			d.navigation[attribute.Val] = d.navigation[attribute.Val] || navigation
		}
	}
	for child := range node.ChildNodes() {
		d.add(child, navigation)
	}
}

func TestBuildRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no first page":         {map[string]string{"a.md": "# A"}, "docs/README.md does not exist"},
		"a page without title":  {map[string]string{"README.md": "text"}, "docs/README.md has no heading"},
		"a page in no list":     {map[string]string{"README.md": "# All\n\n## S\n", "a.md": "# A"}, "docs/README.md does not list a.md"},
		"a list of no page":     {map[string]string{"README.md": "# All\n\n## S\n\n- [A](a.md)"}, "docs/README.md: the link a.md leads to no page"},
		"a link to no page":     {map[string]string{"README.md": "# All\n[B](b.md)"}, "the link b.md leads to no page"},
		"a link to no heading":  {map[string]string{"README.md": "# All\n[B](#b)"}, "the link #b leads to no heading"},
		"a link to no file":     {map[string]string{"README.md": "# All\n[B](../LICENSE)"}, "the link ../LICENSE leads to no file"},
		"a page below the docs": {map[string]string{"README.md": "# All\n\n## S\n\n- [A](a/README.md)\n", "a/README.md": "# A", "b/c.md": "# C"}, "docs/README.md does not list b/c.md"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, content := range tc.files {
				if err := writeFile(filepath.Join(root, docs, file), []byte(content)); err != nil {
					t.Fatal(err)
				}
			}
			err := build(root, filepath.Join(root, "out"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
