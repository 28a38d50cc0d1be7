// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/samber/lo"
)

// maxRendered is the maximum number of bytes to which a Go template can render, because an
// object of the API server has at most 1.5 MiB.
const maxRendered = 256 * 1024

// functions are the functions of sprig that read nothing from outside, without those whose
// result can exceed the memory.
var functions = lo.OmitByKeys(sprig.HermeticTxtFuncMap(), []string{"repeat", "until", "untilStep", "seq", "indent", "nindent"})

// parse returns a Go template whose functions read nothing from outside, so that it always
// renders to the same text for the same offering.
func parse(text string) (*template.Template, error) {
	parsed, err := template.New("template").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a Go template: %w", text, err)
	}
	return parsed, nil
}

// render returns the text to which a template renders with the values of the variables.
func render(parsed *template.Template, values map[string]any) (string, error) {
	rendered := &limited{}
	if err := parsed.Execute(rendered, values); err != nil {
		return "", fmt.Errorf("rendering %q: %w", parsed.Root.String(), err)
	}
	return rendered.String(), nil
}

// limited is a string builder with at most maxRendered bytes.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxRendered {
		return 0, errors.New("it renders to more than 256 KiB")
	}
	return l.Builder.Write(p)
}
