// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"strings"
)

// Parts of the document are generated. Each is between two lines that name it; everything outside of them is written by
// hand, and stays.
func beginOf(part string) string { return fmt.Sprintf("<!-- begin generated: %s -->", part) }
func endOf(part string) string   { return fmt.Sprintf("<!-- end generated: %s -->", part) }

// writeDocument replaces the generated parts of a document that exists.
func writeDocument(file string, r *report) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the document whose generated parts are to be replaced: %w", err)
	}
	machine, err := host()
	if err != nil {
		return err
	}
	document := string(text)
	for _, part := range documentParts(r, machine) {
		if document, err = replacePart(document, part.name, part.content); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return os.WriteFile(file, []byte(document), 0o644)
}

// part is a generated part of the document.
type part struct{ name, content string }

// documentParts returns all generated parts.
func documentParts(r *report, machine string) []part {
	return []part{
		{"machine", machine},
		{"durations", r.durations()},
		{"goals", r.goals()},
		{"costs", r.costs()},
		{"requests", r.requests()},
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
