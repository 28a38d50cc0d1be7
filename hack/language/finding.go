// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// finding is a phrase in a file, with what to write instead.
type finding struct {
	file   string
	line   int
	phrase string
	write  string
}

// String returns the finding in the form of a compiler's message.
func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %q: write %s", f.file, f.line, f.phrase, f.write)
}

// perFolder returns a line with the number of findings for each top-level folder.
func perFolder(all []finding) []string {
	counts := map[string]int{}
	for _, f := range all {
		folder, _, inFolder := strings.Cut(f.file, "/")
		if !inFolder {
			folder = "."
		}
		counts[folder]++
	}
	var lines []string
	for _, folder := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%5d %s", counts[folder], folder))
	}
	return lines
}

// line is a line of a file, without the marks of comments.
type line struct {
	number int
	text   string
}

// passage is text in which a phrase can span lines: a comment, a string, a paragraph.
type passage []line

// match is where a phrase is in the text of a passage.
type match struct {
	start, end int
	write      string
}

// findings returns the phrases in a passage, in their order.
func (p passage) findings() []finding {
	var text strings.Builder
	starts := make([]int, len(p)) // where each line starts in text
	for i, l := range p {
		starts[i] = text.Len()
		text.WriteString(strings.Join(strings.Fields(l.text), " ") + " ")
	}
	whole := strings.TrimRight(text.String(), " ")
	var matches []match
	for _, r := range rules {
		for _, at := range r.matches(whole) {
			matches = append(matches, match{start: at[0], end: at[1], write: r.write})
		}
	}
	slices.SortFunc(matches, func(a, b match) int { return cmp.Or(a.start-b.start, b.end-a.end) })
	var all []finding
	end := 0
	for _, m := range matches {
		if m.start < end {
			continue // It is part of a phrase that was already found.
		}
		end = m.end
		i := sort.SearchInts(starts, m.start+1) - 1
		all = append(all, finding{line: p[i].number, phrase: strings.TrimSpace(whole[m.start:m.end]), write: m.write})
	}
	return all
}
