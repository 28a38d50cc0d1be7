// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// generated matches the parts of a page that programs write.
var generated = regexp.MustCompile(`(?s)<!-- begin generated.*?<!-- end generated[^\n]*`)

func TestCellsAreShort(t *testing.T) {
	for page, text := range pages(t) {
		if page == "docs/troubleshooting.md" {
			continue // one row for each symptom, with all that helps
		}
		for _, problem := range longCells(generated.ReplaceAllString(text, "")) {
			t.Errorf("%s: %s: move details below the table", page, problem)
		}
	}
}

func TestLongCells(t *testing.T) {
	words := strings.Repeat("word ", mostWords)
	page := "| a | b |\n| --- | --- |\n| " + words + "| x |\n| x \\| " + words + "| x |\n```\n| " + words + words + "|\n```\n"
	if got, want := longCells(page), []string{"a cell has 42 words, at most 40: x \\| word word word"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// longCells returns the cells of the tables of a page that have too many words.
func longCells(page string) []string {
	var problems []string
	code := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if code || !strings.HasPrefix(line, "|") {
			continue
		}
		for cell := range strings.SplitSeq(strings.ReplaceAll(line, `\|`, "\x00"), "|") {
			if words := strings.Fields(cell); len(words) > mostWords {
				begin := strings.ReplaceAll(strings.Join(words[:5], " "), "\x00", `\|`)
				problems = append(problems, fmt.Sprintf("a cell has %d words, at most %d: %s", len(words), mostWords, begin))
			}
		}
	}
	return problems
}
