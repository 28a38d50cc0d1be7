// SPDX-License-Identifier: Apache-2.0

// Package generated replaces the generated parts of documents. Each is between two lines that name it. Everything outside of
// them is written by hand, and stays.
package generated

import (
	"fmt"
	"strings"
)

// Begin returns the line before a part.
func Begin(part string) string { return fmt.Sprintf("<!-- begin generated: %s -->", part) }

// End returns the line after a part.
func End(part string) string { return fmt.Sprintf("<!-- end generated: %s -->", part) }

// Replace returns a document with another content of a part.
func Replace(document, part, content string) (string, error) {
	before, rest, begins := strings.Cut(document, Begin(part)+"\n")
	_, after, ends := strings.Cut(rest, End(part)+"\n")
	if !begins || !ends {
		return "", fmt.Errorf("the document must have the lines %q and %q, in this order", Begin(part), End(part))
	}
	return before + Begin(part) + "\n\n" + strings.Trim(content, "\n") + "\n\n" + End(part) + "\n" + after, nil
}
