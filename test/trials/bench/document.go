// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Parts of the document are generated. Each is between two lines that name it; everything outside of them is written by
// hand, and stays.
func beginOf(part string) string { return fmt.Sprintf("<!-- begin generated: %s -->", part) }
func endOf(part string) string   { return fmt.Sprintf("<!-- end generated: %s -->", part) }

// writeDocuments replaces the generated parts of documents that exist, and draws the pictures beside the first. Each part must be
// in one of them.
func writeDocuments(files []string, r *report) error {
	machine, err := host()
	if err != nil {
		return err
	}
	texts := make([]string, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a document whose generated parts are to be replaced: %w", err)
		}
		texts = append(texts, string(text))
	}
	if err := replaceParts(texts, documentParts(r, machine)); err != nil {
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
		i := slices.IndexFunc(documents, func(text string) bool { return strings.Contains(text, beginOf(part.name)) })
		if i < 0 {
			return fmt.Errorf("no document has the line %q", beginOf(part.name))
		}
		replaced, err := replacePart(documents[i], part.name, part.content)
		if err != nil {
			return err
		}
		documents[i] = replaced
	}
	return nil
}

// part is a generated part of the document.
type part struct{ name, content string }

// documentParts returns all generated parts.
func documentParts(r *report, machine string) []part {
	return []part{
		{"machine", machine},
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

// replacePart replaces the content of a generated part.
func replacePart(document, part, content string) (string, error) {
	before, rest, begins := strings.Cut(document, beginOf(part)+"\n")
	_, after, ends := strings.Cut(rest, endOf(part)+"\n")
	if !begins || !ends {
		return "", fmt.Errorf("the document must have the lines %q and %q, in this order", beginOf(part), endOf(part))
	}
	return before + beginOf(part) + "\n\n" + strings.Trim(content, "\n") + "\n\n" + endOf(part) + "\n" + after, nil
}
