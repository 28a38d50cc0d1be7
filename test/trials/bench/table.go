// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// table is a Markdown table that is also readable as plain text. The first column has text, the others numbers.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String implements fmt.Stringer.
func (t *table) String() string {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	text := &strings.Builder{}
	write := func(row []string) {
		for i := range widths {
			cell := ""
			if i < len(row) {
				cell = row[i]
			}
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				fmt.Fprintf(text, "| %s%s ", cell, padding)
			} else {
				fmt.Fprintf(text, "| %s%s ", padding, cell)
			}
		}
		text.WriteString("|\n")
	}
	write(t.header)
	for i, width := range widths {
		if i == 0 {
			fmt.Fprintf(text, "| %s ", strings.Repeat("-", width))
		} else {
			fmt.Fprintf(text, "| %s: ", strings.Repeat("-", max(width-1, 1)))
		}
	}
	text.WriteString("|\n")
	for _, row := range t.rows {
		write(row)
	}
	return text.String()
}

// none is the cell of a figure that was not measured.
const none = "–"

func seconds(value float64) string { return fmt.Sprintf("%.1f s", value) }
func short(value float64) string   { return fmt.Sprintf("%.2f s", value) }
func count(value float64) string   { return fmt.Sprintf("%.2f", value) }
func percent(value float64) string { return fmt.Sprintf("%.1f %%", 100*value) }
func mebibytes(value float64) string {
	return fmt.Sprintf("%.0f MiB", value)
}
