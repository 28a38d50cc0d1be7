// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/karpenter-capi/karpenter-capi/hack/generated"
)

// writeDocuments replaces the generated parts of documents that exist, and draws the pictures beside the first. Each part must be
// in one of them. Stored results can be of another machine than this one, so their description stays.
func writeDocuments(files []string, r *report, stored bool) error {
	machine, err := host()
	if err != nil {
		return err
	}
	parts := documentParts(r, machine)
	if stored {
		parts = slices.DeleteFunc(parts, func(p part) bool { return p.name == machinePart })
	}
	texts := make([]string, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a document whose generated parts are to be replaced: %w", err)
		}
		texts = append(texts, string(text))
	}
	if err := replaceParts(texts, parts); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(files, " and "), err)
	}
	errs := []error{drawPictures(filepath.Dir(files[0]), r)}
	for i, file := range files {
		errs = append(errs, os.WriteFile(file, []byte(texts[i]), 0o644))
	}
	return errors.Join(errs...)
}

// replaceParts replaces each part in the document that has it.
func replaceParts(documents []string, parts []part) error {
	for _, part := range parts {
		i := slices.IndexFunc(documents, func(text string) bool { return strings.Contains(text, generated.Begin(part.name)) })
		if i < 0 {
			return fmt.Errorf("no document has the line %q", generated.Begin(part.name))
		}
		replaced, err := generated.Replace(documents[i], part.name, part.content)
		if err != nil {
			return err
		}
		documents[i] = replaced
	}
	return nil
}

// machinePart is the name of the part that describes the machine.
const machinePart = "machine"

// part is a generated part of the document.
type part struct{ name, content string }

// documentParts returns all generated parts.
func documentParts(r *report, machine string) []part {
	return []part{
		{machinePart, machine},
		{"durations", r.durations()},
		{"steps", r.steps()},
		{"beside", r.beside()},
		{"goals", r.goals()},
		{"costs", r.costs()},
		{"requests", r.requests()},
		{"components", r.components()},
		{"processes", r.processes()},
	}
}
