// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"text/template"
	"text/template/parse"
	"unicode/utf8"
)

// templates are the Go templates of the patches of one KarpenterMachineTemplate. They share a budget.
type templates struct {
	budget    *budget
	functions map[string]any
	empty     *template.Template // has the functions
}

func newTemplates() *templates {
	b := &budget{}
	t := &templates{budget: b, functions: b.functions()}
	t.functions[itemsOf] = b.items
	t.empty = template.New("").Option("missingkey=error").Funcs(t.functions)
	return t
}

// goTemplate is a Go template that can be rendered.
type goTemplate struct {
	source string
	parsed *template.Template
	budget *budget
}

// parse returns a Go template. The error names the first construct that is not allowed, and the reason.
func (t *templates) parse(source string) (*goTemplate, error) {
	if length := utf8.RuneCountInString(source); length > maxTemplate {
		return nil, fmt.Errorf("a Go template can have at most %d characters, found %d", maxTemplate, length)
	}
	tree := parse.New("template")
	tree.Mode = parse.SkipFuncCheck // check names functions that are not allowed
	defined := map[string]*parse.Tree{}
	if _, err := tree.Parse(source, "", "", defined); err != nil {
		return nil, fmt.Errorf("%s is not a Go template: %w", excerpt(source), err)
	}
	for name, other := range defined {
		if other != tree {
			return nil, fmt.Errorf("%s: define and block are not allowed in patches, found %q", excerpt(source), name)
		}
	}
	if err := t.check(tree.Root, place{}); err != nil {
		return nil, fmt.Errorf("%s: %w", excerpt(source), err)
	}
	parsed, err := t.empty.AddParseTree(tree.Name, tree)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", excerpt(source), err)
	}
	return &goTemplate{source: source, parsed: parsed, budget: t.budget}, nil
}

// render returns the text to which a template renders with the values of the variables.
func (t *goTemplate) render(values map[string]any) (string, error) {
	rendered := &text{budget: t.budget}
	if err := t.parsed.Execute(rendered, values); err != nil {
		return "", fmt.Errorf("rendering %s: %w", excerpt(t.source), err)
	}
	return rendered.String(), nil
}

// excerpt returns a quoted text, or its beginning: messages are for conditions.
func excerpt(text string) string {
	const most = 256
	if len(text) > most {
		return fmt.Sprintf("%q…", text[:most])
	}
	return fmt.Sprintf("%q", text)
}
