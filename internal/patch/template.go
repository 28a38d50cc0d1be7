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

// maxRendered bounds what a Go template may render to, in bytes: an object of the
// API server has at most 1.5 MiB in all.
const maxRendered = 256 * 1024

// functions are those of sprig that read nothing from outside, without those whose
// result can be larger than any memory.
var functions = lo.OmitByKeys(sprig.HermeticTxtFuncMap(), []string{"repeat", "until", "untilStep", "seq", "indent", "nindent"})

// parse returns a Go template whose functions read nothing from outside, so that
// the same offering always renders to the same text.
func parse(text string) (*template.Template, error) {
	parsed, err := template.New("template").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no Go template: %w", text, err)
	}
	return parsed, nil
}

// render returns what a template renders to with the values of the variables.
func render(parsed *template.Template, values map[string]any) (string, error) {
	rendered := &limited{}
	if err := parsed.Execute(rendered, values); err != nil {
		return "", fmt.Errorf("rendering %q: %w", parsed.Root.String(), err)
	}
	return rendered.String(), nil
}

// limited is a string builder that does not take more than maxRendered bytes.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxRendered {
		return 0, errors.New("it renders to more than 256 KiB")
	}
	return l.Builder.Write(p)
}
