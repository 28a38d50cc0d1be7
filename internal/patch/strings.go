// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/samber/lo"
)

const (
	// maxCutset is the maximum number of bytes of the characters that trimAll removes.
	maxCutset = 64
	// maxVersion is the maximum number of bytes of a version or its constraint.
	maxVersion = 256
	// maxPattern and maxMatched are the maximum number of bytes of a regular expression and what replaces its matches, and of
	// the text that it is applied to.
	maxPattern, maxMatched = 128, 1 << 10
)

// fits returns an error if text with a length, and more of it a number of times, is too large.
func fits(length, times, more int) error {
	if length > maxSize || more > 0 && times > (maxSize-length)/more {
		return tooLarge("its result")
	}
	return nil
}

func indent(spaces int, text string) (string, error) {
	if err := fits(len(text), strings.Count(text, "\n")+1, spaces); err != nil {
		return "", err
	}
	pad := strings.Repeat(" ", spaces)
	return pad + strings.ReplaceAll(text, "\n", "\n"+pad), nil
}

func nindent(spaces int, text string) (string, error) {
	indented, err := indent(spaces, text)
	return "\n" + indented, err
}

func repeat(count int, text string) (string, error) {
	if err := fits(0, count, len(text)); err != nil {
		return "", err
	}
	return strings.Repeat(text, count), nil
}

func replace(old, with, text string) (string, error) {
	if err := fits(len(text), strings.Count(text, old), len(with)-len(old)); err != nil {
		return "", err
	}
	return strings.ReplaceAll(text, old, with), nil
}

// texts returns the elements of a list as text, or another value as text.
func texts(from any) []string {
	value := reflect.ValueOf(from)
	if value.Kind() != reflect.Slice {
		value = reflect.ValueOf([]any{from})
	}
	all := make([]string, 0, value.Len())
	for i := range value.Len() {
		if element := value.Index(i).Interface(); element != nil {
			all = append(all, fmt.Sprint(element))
		}
	}
	return all
}

func join(separator string, list any) (string, error) {
	all := texts(list)
	if err := fits(lo.SumBy(all, func(text string) int { return len(text) }), len(all)-1, len(separator)); err != nil {
		return "", err
	}
	return strings.Join(all, separator), nil
}

func splitList(separator, text string) ([]string, error) {
	if err := fits(len(text), strings.Count(text, separator)+1, overhead); err != nil {
		return nil, err
	}
	return strings.Split(text, separator), nil
}

func split(separator, text string) (map[string]any, error) {
	all, err := splitList(separator, text)
	parts := make(map[string]any, len(all))
	for i, part := range all {
		parts[fmt.Sprintf("_%d", i)] = part
	}
	return parts, err
}

func trimAll(cutset, text string) (string, error) {
	if len(cutset) > maxCutset {
		return "", fmt.Errorf("it can remove characters of at most %d bytes, found %d", maxCutset, len(cutset))
	}
	return strings.Trim(text, cutset), nil
}

func semverCompare(constraint, version string) (bool, error) {
	if len(constraint) > maxVersion || len(version) > maxVersion {
		return false, fmt.Errorf("a version and its constraint can have at most %d bytes", maxVersion)
	}
	return sprigFunctions["semverCompare"].(func(string, string) (bool, error))(constraint, version)
}

// verb is what printf accepts: no address in memory (%p), no argument a second time (%[1]s), and no width above 99.
var verb = regexp.MustCompile(`%[-+# 0]*[0-9]{0,2}(\.[0-9]{0,2})?[sdvqxXfegtcT%]`)

func printf(format string, arguments ...any) (string, error) {
	if strings.Contains(verb.ReplaceAllString(format, ""), "%") {
		return "", fmt.Errorf("%s has a verb that is not allowed: allowed are %%s, %%d, %%v, %%q, %%x, %%X, %%f, %%e, %%g, %%t, %%c and %%T, with a width of at most 99",
			excerpt(format))
	}
	return fmt.Sprintf(format, arguments...), nil
}

// compile returns a regular expression whose size is in proportion to its text: without {n}, classes such as \pL, and
// flags. Its matches in the text cost at most work.
func (b *budget) compile(pattern, text, with string, work int) (*regexp.Regexp, error) {
	switch {
	case len(pattern) > maxPattern || len(with) > maxPattern:
		return nil, fmt.Errorf("a regular expression, and what replaces its matches, can have at most %d bytes", maxPattern)
	case len(text) > maxMatched:
		return nil, errors.New("a regular expression can be applied to at most 1 KiB")
	case strings.Contains(pattern, "{") || strings.Contains(strings.ToLower(pattern), `\p`) || strings.Contains(strings.ReplaceAll(pattern, "(?:", ""), "(?"):
		return nil, fmt.Errorf(`the regular expression %q has {, \p or (?, which is not allowed`, pattern)
	}
	if err := b.spend(len(pattern) * (len(text) + overhead) * work); err != nil {
		return nil, err
	}
	return regexp.Compile(pattern)
}

func (b *budget) regexMatch(pattern, text string) (bool, error) {
	expression, err := b.compile(pattern, text, "", 1)
	return err == nil && expression.MatchString(text), err
}

func (b *budget) regexFind(pattern, text string) (string, error) {
	expression, err := b.compile(pattern, text, "", 1)
	if err != nil {
		return "", err
	}
	return expression.FindString(text), nil
}

// regexReplaceAll may look for each of its matches up to the end of the text.
func (b *budget) regexReplaceAll(pattern, text, with string) (string, error) {
	expression, err := b.compile(pattern, text, with, 1+len(text)/overhead)
	if err != nil {
		return "", err
	}
	return expression.ReplaceAllString(text, with), nil
}
