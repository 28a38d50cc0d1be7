// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

//go:embed assets
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "assets/page.html"))

// site is the documentation of a repository.
type site struct {
	repository fs.FS
	pages      map[string]*page // by the path in docs
	assets     map[string]bool  // other files of docs
	sections   []section
}

// section is a part of the navigation.
type section struct {
	Title string
	Items []item
}

// item is a page in the navigation, or a page of the forge.
type item struct {
	Title string
	// page is nil for a page of the forge, which has a link instead.
	page *page
	link string
	// Pages are the other pages of a folder, if the page is the first one of the folder.
	Pages []item
}

// build writes the site of a repository into a folder.
func build(repository, out string) error {
	s := &site{repository: os.DirFS(repository), pages: map[string]*page{}, assets: map[string]bool{}}
	if err := s.read(); err != nil {
		return err
	}
	if err := s.navigate(); err != nil {
		return err
	}
	return s.write(out)
}

// read reads all pages of docs.
func (s *site) read() error {
	return fs.WalkDir(s.repository, docs, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := strings.TrimPrefix(file, docs+"/")
		if path.Ext(name) != ".md" {
			s.assets[name] = true
			return nil
		}
		content, err := fs.ReadFile(s.repository, file)
		if err != nil {
			return err
		}
		if s.pages[name] = parse(name, content); s.pages[name].Title == "" {
			return fmt.Errorf("%s has no heading", file)
		}
		return nil
	})
}

// navigate reads the navigation, which has each page once.
func (s *site) navigate() error {
	first := s.pages[index]
	if first == nil {
		return fmt.Errorf("%s/%s does not exist", docs, index)
	}
	listed := map[*page]bool{first: true}
	err := ast.Walk(first.root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		switch node := node.(type) {
		case *ast.Heading:
			if entering && node.Level == 2 {
				s.sections = append(s.sections, section{Title: textOf(node, first.source)})
			}
		case *ast.Link:
			if !entering || len(s.sections) == 0 {
				return ast.WalkContinue, nil
			}
			last := &s.sections[len(s.sections)-1]
			entry := item{Title: textOf(node, first.source), page: s.pages[string(node.Destination)]}
			if entry.page == nil {
				link, err := s.resolve(first, string(node.Destination))
				if err != nil {
					return ast.WalkStop, fmt.Errorf("%s/%s: %w", docs, index, err)
				}
				entry.link = string(link)
			} else {
				entry.Pages = s.below(entry.page, listed)
				listed[entry.page] = true
			}
			last.Items = append(last.Items, entry)
		}
		return ast.WalkContinue, nil
	})
	var missing []error
	for _, name := range slices.Sorted(maps.Keys(s.pages)) {
		if !listed[s.pages[name]] {
			missing = append(missing, fmt.Errorf("%s/%s does not list %s", docs, index, name))
		}
	}
	return errors.Join(err, errors.Join(missing...))
}

// below returns the other pages of the folder of which a page is the first one.
func (s *site) below(first *page, listed map[*page]bool) []item {
	folder := path.Dir(first.Path)
	if path.Base(first.Path) != index || folder == "." {
		return nil
	}
	var items []item
	for _, name := range slices.Sorted(maps.Keys(s.pages)) {
		if p := s.pages[name]; p != first && strings.HasPrefix(name, folder+"/") {
			listed[p] = true
			items = append(items, item{Title: p.Title, page: p})
		}
	}
	return items
}

// view is what the layout shows: a page, and the site as it is from there.
type view struct {
	*page
	Body     template.HTML
	Sections []section
	// Root is the path to the folder of the site.
	Root string
}

// Link returns the link to an item of the navigation.
func (v view) Link(to item) string {
	if to.page == nil {
		return to.link
	}
	return relative(v.Path, to.page.Path)
}

// Open reports whether a page below an item is shown.
func (v view) Open(of item) bool {
	return of.page == v.page || slices.ContainsFunc(of.Pages, func(below item) bool { return below.page == v.page })
}

// write writes all files of the site.
func (s *site) write(out string) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	var entries []map[string]string
	for _, name := range slices.Sorted(maps.Keys(s.pages)) {
		p := s.pages[name]
		body, err := s.render(p)
		if err != nil {
			return err
		}
		var b strings.Builder
		if err := layout.Execute(&b, view{page: p, Body: body, Sections: s.sections, Root: strings.Repeat("../", strings.Count(name, "/"))}); err != nil {
			return err
		}
		if err := writeFile(filepath.Join(out, htmlOf(name)), []byte(b.String())); err != nil {
			return err
		}
		entries = append(entries, map[string]string{"link": htmlOf(name), "title": p.Title, "text": p.Text})
	}
	// A script and no JSON file, because browsers do not let a page that is a file read other files.
	list, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(out, "index.js"), append([]byte("const pages = "), list...)); err != nil {
		return err
	}
	for name := range s.assets {
		if err := copyFile(s.repository, path.Join(docs, name), filepath.Join(out, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{"style.css", "search.js"} {
		if err := copyFile(assets, path.Join("assets", name), filepath.Join(out, name)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from fs.FS, file, to string) error {
	content, err := fs.ReadFile(from, file)
	if err != nil {
		return err
	}
	return writeFile(to, content)
}

func writeFile(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644) //nolint:gosec // a web server reads it
}
