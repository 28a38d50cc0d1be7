// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reader returns the passages of a file.
type reader func(content []byte) ([]passage, error)

// readerOf returns the reader for a file; nil if the file is not checked.
func readerOf(name string) reader {
	switch base := filepath.Base(name); {
	case base == "LICENSE":
		return nil
	case filepath.Ext(base) == ".go":
		return readGo
	case filepath.Ext(base) == ".md":
		return readMarkdown
	case slices.Contains([]string{".yaml", ".yml", ".mk", ".sh", ".tpl", ".txt"}, filepath.Ext(base)),
		slices.Contains([]string{"Makefile", "Dockerfile"}, base), name == ".ci/run":
		return readText
	default:
		return nil
	}
}

// readGo returns the comments and strings of Go code, without import paths and struct tags.
func readGo(content []byte) ([]passage, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	number := func(at token.Pos) int { return files.Position(at).Line }
	var passages []passage
	for _, group := range file.Comments {
		var p passage
		for _, comment := range group.List {
			p = append(p, split(uncomment(comment.Text), number(comment.Pos()))...)
		}
		passages = append(passages, p)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(n.Value); err == nil {
				passages = append(passages, literal(text, n.Value[0] == '`', number(n.Pos())))
			}
		}
		return true
	})
	return passages, nil
}

// uncomment removes the marks of a comment in Go.
func uncomment(text string) string {
	if rest, ok := strings.CutPrefix(text, "//"); ok {
		return rest
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, "/*"), "*/")
}

// literal returns a string as a passage. The lines of a raw string are lines of the file.
func literal(text string, raw bool, number int) passage {
	if raw {
		return split(text, number)
	}
	return passage{{number: number, text: text}}
}

// split returns the lines of a text whose first one has the number.
func split(text string, number int) passage {
	var p passage
	for i, text := range strings.Split(text, "\n") {
		p = append(p, line{number: number + i, text: text})
	}
	return p
}

var (
	fence  = regexp.MustCompile("^\\s*(```|~~~)")
	code   = regexp.MustCompile("`[^`]*`")
	target = regexp.MustCompile(`\]\([^)]*\)`)
	quote  = regexp.MustCompile(`^\s*>\s?`)
)

// readMarkdown returns the paragraphs of Markdown, without code and the targets of links.
func readMarkdown(content []byte) ([]passage, error) {
	lines := split(string(content), 1)
	inCode := false
	for i, l := range lines {
		isFence := fence.MatchString(l.text)
		if isFence || inCode {
			lines[i].text = ""
		} else {
			// Code is not replaced with a space, so that the words around it do not form a phrase.
			text := code.ReplaceAllString(quote.ReplaceAllString(l.text, ""), "``")
			lines[i].text = target.ReplaceAllString(text, "]()")
		}
		inCode = inCode != isFence
	}
	return paragraphs(lines), nil
}

var mark = regexp.MustCompile(`^\s*#+\s?`)

// readText returns the paragraphs of a file with comments that begin with #. It also reads
// text outside of comments, such as a description, a message, or the help of a target.
func readText(content []byte) ([]passage, error) {
	lines := split(string(content), 1)
	for i, l := range lines {
		lines[i].text = mark.ReplaceAllString(l.text, "")
	}
	return paragraphs(lines), nil
}

// paragraphs divides lines at those that are empty.
func paragraphs(lines []line) []passage {
	var all []passage
	var p passage
	for _, l := range lines {
		if strings.TrimSpace(l.text) != "" {
			p = append(p, l)
			continue
		}
		all, p = append(all, p), nil
	}
	return append(all, p)
}
