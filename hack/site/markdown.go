// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

const (
	docs  = "docs"
	index = "README.md"
	// forge is where the files are that are not part of the site.
	forge = "https://github.com/karpenter-capi/karpenter-capi/blob/main/"
)

// markdown keeps HTML, such as line breaks in cells of tables, because the pages are files of this repository.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()))

// page is a page of the site.
type page struct {
	// Path is the path of its file, in docs.
	Path string
	// Title is its first heading.
	Title string
	// Text is all words of it, for the search.
	Text string

	source []byte
	root   ast.Node
	// anchors are those of its headings.
	anchors map[string]bool
}

// anchors gives headings the same anchors as GitHub, so that links work in both.
type anchors map[string]bool

// Generate implements parser.IDs.
func (a anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	anchor := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
			return r
		}
		return -1
	}, strings.ToLower(string(heading)))
	unique := anchor
	for i := 1; a[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", anchor, i)
	}
	a[unique] = true
	return []byte(unique)
}

// Put implements parser.IDs.
func (a anchors) Put(anchor []byte) { a[string(anchor)] = true }

// parse reads a page.
func parse(file string, source []byte) *page {
	p := &page{Path: file, source: source, anchors: anchors{}}
	p.root = markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchors(p.anchors)))))
	var words []string
	_ = ast.Walk(p.root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		switch node := node.(type) {
		case *ast.Heading:
			if entering && p.Title == "" {
				p.Title = textOf(node, source)
			}
		case *ast.Text:
			if entering {
				words = append(words, string(node.Value(source)))
			}
		}
		return ast.WalkContinue, nil
	})
	p.Text = strings.Join(strings.Fields(strings.Join(words, " ")), " ")
	return p
}

// textOf returns the text below a node.
func textOf(node ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(node, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if text, ok := node.(*ast.Text); ok && entering {
			b.Write(text.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// render returns the page as HTML. Its links lead to pages of the site, or to the forge.
func (s *site) render(p *page) (template.HTML, error) {
	err := ast.Walk(p.root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var err error
		switch node := node.(type) {
		case *ast.Link:
			node.Destination, err = s.resolve(p, string(node.Destination))
		case *ast.Image:
			node.Destination, err = s.resolve(p, string(node.Destination))
		}
		return ast.WalkContinue, err
	})
	if err != nil {
		return "", fmt.Errorf("%s/%s: %w", docs, p.Path, err)
	}
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, p.source, p.root); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil //nolint:gosec // the pages are files of this repository
}

// resolve returns where a link leads to in the site.
func (s *site) resolve(from *page, target string) ([]byte, error) {
	if strings.Contains(target, ":") {
		return []byte(target), nil // another site
	}
	file, anchor, hasAnchor := strings.Cut(target, "#")
	to := from.Path
	if file != "" {
		to = path.Join(path.Dir(from.Path), file)
	}
	if outside, ok := strings.CutPrefix(to, "../"); ok {
		if _, err := fs.Stat(s.repository, outside); err != nil {
			return nil, fmt.Errorf("the link %s leads to no file: %w", target, err)
		}
		return []byte(forge + outside + suffix(anchor, hasAnchor)), nil
	}
	if s.assets[to] {
		return []byte(target), nil
	}
	page, known := s.pages[to]
	if !known {
		return nil, fmt.Errorf("the link %s leads to no page", target)
	}
	if hasAnchor && !page.anchors[anchor] {
		return nil, fmt.Errorf("the link %s leads to no heading", target)
	}
	return []byte(relative(from.Path, to) + suffix(anchor, hasAnchor)), nil
}

func suffix(anchor string, has bool) string {
	if has {
		return "#" + anchor
	}
	return ""
}

// htmlOf returns the file of a page in the site.
func htmlOf(file string) string {
	if path.Base(file) == index {
		return path.Join(path.Dir(file), "index.html")
	}
	return strings.TrimSuffix(file, ".md") + ".html"
}

// relative returns the path from one page to another.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + htmlOf(to)
}
