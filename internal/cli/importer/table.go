// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/samber/lo"
)

// row is a row of a CSV file by the names of its columns, in small letters with dashes.
type row struct {
	// where is the file and the line, for errors.
	where  string
	values map[string]string
}

// readTable calls read for each row of a CSV file whose first line names the columns. Columns that
// end in a colon stand for all that begin with it.
func readTable(file File, required, optional []string, read func(row) error) error {
	reader := csv.NewReader(file.Content)
	reader.TrimLeadingSpace = true
	reader.Comment = '#'
	header, err := reader.Read()
	if err != nil {
		return fmt.Errorf("%s: expected a CSV file whose first line names the columns: %w", file.Name, err)
	}
	for i := range header {
		header[i] = columnOf(strings.TrimPrefix(header[i], "\ufeff"))
	}
	if err := checkHeader(header, required, optional); err != nil {
		return fmt.Errorf("%s:1: %w", file.Name, err)
	}
	for {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
		line, _ := reader.FieldPos(0)
		r := row{where: fmt.Sprintf("%s:%d", file.Name, line), values: map[string]string{}}
		for i, field := range fields {
			r.values[header[i]] = strings.TrimSpace(field)
		}
		for _, name := range required {
			if r.values[name] == "" {
				return fmt.Errorf("%s: column %s is empty", r.where, name)
			}
		}
		if err := read(r); err != nil {
			return err
		}
	}
}

// columnOf returns the name of a column. What follows a colon is a name of its own.
func columnOf(text string) string {
	prefix, rest, found := strings.Cut(strings.TrimSpace(text), ":")
	prefix = strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(prefix))
	return prefix + lo.Ternary(found, ":"+rest, "")
}

func checkHeader(header, required, optional []string) error {
	known := slices.Concat(required, optional)
	for i, name := range header {
		prefix, _, found := strings.Cut(name, ":")
		if !slices.Contains(known, prefix+lo.Ternary(found, ":", "")) {
			return fmt.Errorf("unknown column %q: expected %s", name, strings.Join(known, ", "))
		}
		if slices.Contains(header[:i], name) {
			return fmt.Errorf("column %q is there twice", name)
		}
	}
	for _, name := range required {
		if !slices.Contains(header, name) {
			return fmt.Errorf("there is no column %s: expected %s", name, strings.Join(required, ", "))
		}
	}
	return nil
}
