// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// entry is the constant of a condition, ConditionX, or of a reason, ReasonX or DriftX, with its comment:
//
//	// ConditionX reports whether …
//	//   - On: KarpenterMachineTemplate
//	//   - True: what that means
//	//   - False: the same
//	//   - Unknown: the same
//
//	// ReasonX: what it means.
//	//   - In: ConditionX=False, and where else it can be
//	//   - To do: what a user can do
//	//   - See: docs/page.md#heading
//
// A reason without a list is one of events only.
type entry struct {
	name, value string
	// meaning is the comment without the name and the list.
	meaning string
	// items are the texts of the list.
	items map[string]string
}

func (e entry) isCondition() bool { return strings.HasPrefix(e.name, "Condition") }

// list returns the words of an item, which commas separate.
func (e entry) list(item string) []string {
	if e.items[item] == "" {
		return nil
	}
	return strings.Split(e.items[item], ", ")
}

// readConstants returns the conditions and reasons of a package, in the order of its files.
func readConstants(folder string) ([]entry, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: %w", folder, os.ErrNotExist)
	}
	var constants []entry
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				constant := spec.(*ast.ValueSpec)
				text := constant.Doc.Text()
				if !group.Lparen.IsValid() {
					text = group.Doc.Text()
				}
				if e, ok := entryOf(constant, text); ok {
					constants = append(constants, e)
				}
			}
		}
	}
	return constants, nil
}

// entryOf returns the entry of a constant. It returns false if the constant is neither a condition nor a reason.
func entryOf(constant *ast.ValueSpec, text string) (entry, bool) {
	e := entry{name: constant.Names[0].Name, items: map[string]string{}}
	for _, prefix := range []string{"Condition", "Reason", "Drift"} {
		if value, ok := strings.CutPrefix(e.name, prefix); ok && constant.Type == nil {
			e.value = value
		}
	}
	if e.value == "" {
		return e, false
	}
	if literal, ok := constant.Values[0].(*ast.BasicLit); ok { // ConditionReady is another constant
		e.value, _ = strconv.Unquote(literal.Value)
	}
	var paragraphs []string
	for _, block := range new(doc.Package).Parser().Parse(text).Content {
		switch block := block.(type) {
		case *comment.Paragraph:
			paragraphs = append(paragraphs, plain(block))
		case *comment.List:
			for _, item := range block.Items {
				name, value, _ := strings.Cut(plain(item.Content[0]), ": ")
				e.items[name] = value
			}
		}
	}
	e.meaning = sentence(strings.TrimLeft(strings.TrimPrefix(strings.Join(paragraphs, " "), e.name), ": "))
	return e, true
}

// plain returns the text of a paragraph on one line.
func plain(block comment.Block) string {
	printed := (&comment.Printer{TextWidth: -1}).Text(&comment.Doc{Content: []comment.Block{block}})
	return strings.Join(strings.Fields(string(printed)), " ")
}

// sentence returns a text that begins with a capital letter, unless its first word is a field.
func sentence(text string) string {
	first, _, _ := strings.Cut(text, " ")
	if text == "" || strings.Contains(strings.TrimRight(first, "."), ".") || strings.ToLower(first) != first {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
