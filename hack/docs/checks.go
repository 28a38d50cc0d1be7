// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// checks returns, in words, the default of a field and the checks of the API server. The
// rules of an object are in its own section.
func checks(field *schema, required bool) []string {
	var words []string
	add := func(holds bool, format string, values ...any) {
		if holds {
			words = append(words, fmt.Sprintf(format, values...))
		}
	}
	add(required, "required")
	if field.Default != nil {
		add(true, "default `%s`", field.Default.Raw)
	}
	var values []string
	for _, value := range field.Enum {
		values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
	}
	add(len(values) > 0, "one of %s", strings.Join(values, ", "))
	words = append(words, bounds(field)...)
	add(field.Pattern != "" && !field.XIntOrString, "of the form `%s`", field.Pattern)
	add(len(field.XListMapKeys) > 0, "unique by %s", strings.Join(field.XListMapKeys, " and "))
	inner, _ := objectIn(field)
	if inner != field {
		for _, rule := range field.XValidations {
			add(true, "%s", rule.Message)
		}
	}
	if of := field.AdditionalProperties; of != nil && of.Schema != nil && inner == nil {
		for _, word := range checks(of.Schema, false) {
			add(true, "each value %s", word)
		}
	}
	return words
}

// bounds returns the minimum and maximum of a field, in words.
func bounds(field *schema) []string {
	var words []string
	for _, bound := range []struct {
		least, most *int64
		unit        string
	}{
		{field.MinLength, field.MaxLength, "characters"},
		{field.MinItems, field.MaxItems, "items"},
		{field.MinProperties, field.MaxProperties, "entries"},
	} {
		switch {
		case bound.least != nil && *bound.least > 0 && bound.most != nil:
			words = append(words, fmt.Sprintf("%d to %d %s", *bound.least, *bound.most, bound.unit))
		case bound.least != nil && *bound.least == 1:
			words = append(words, "not empty")
		case bound.least != nil && *bound.least > 0:
			words = append(words, fmt.Sprintf("at least %d %s", *bound.least, bound.unit))
		case bound.most != nil:
			words = append(words, fmt.Sprintf("at most %d %s", *bound.most, bound.unit))
		}
	}
	if field.Minimum != nil {
		words = append(words, fmt.Sprintf("at least %.0f", *field.Minimum))
	}
	if field.Maximum != nil {
		words = append(words, fmt.Sprintf("at most %.0f", *field.Maximum))
	}
	return words
}

// example matches an example at the end of a paragraph or before the default.
var example = regexp.MustCompile(`(?s) Example: (.*?)\.?( Default: |$)`)

// text returns a description on one line, with default and example on separate lines.
func text(description string) string {
	words := strings.Join(strings.Fields(description), " ")
	words = strings.NewReplacer("<", "&lt;", "*", `\*`).Replace(words)
	words = example.ReplaceAllString(words, "<br>Example: `$1`$2")
	return strings.ReplaceAll(words, " Default: ", "<br>Default: ")
}

// mostWords is how many words a cell of a table can have. More belongs into text, which a reader can follow.
const mostWords = 40

// shortened returns the meaning of a field if it fits into a cell. Otherwise, it returns the first sentence, and the rest, which
// belongs below the table.
func shortened(meaning string) (short, rest string) {
	words := strings.Fields(meaning)
	if len(words) <= mostWords {
		return meaning, ""
	}
	end := endOfSentence.FindStringIndex(meaning)
	if end == nil || len(strings.Fields(meaning[:end[0]])) > mostWords-2 {
		return "see below", meaning
	}
	return meaning[:end[0]+1] + " More below.", strings.TrimPrefix(strings.TrimSpace(meaning[end[0]+1:]), "<br>")
}

// endOfSentence matches the end of a sentence, and what separates it from the next one.
var endOfSentence = regexp.MustCompile(`\.( |<br>)`)

// cell returns text, escaped for a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(text, "|", `\|`)
}
