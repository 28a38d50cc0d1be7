// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestText(t *testing.T) {
	for description, want := range map[string]string{
		"one\ntwo.": "one two.",
		"a size. Default: none.\nExample: {a: 5%}.":               "a size.<br>Default: none.<br>Example: `{a: 5%}`",
		"a version. Example: v1.36.3. Default: none, for others.": "a version.<br>Example: `v1.36.3`<br>Default: none, for others.",
		"a <b> and *": `a &lt;b> and \*`,
	} {
		if diff := cmp.Diff(want, text(description)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", description, diff)
		}
	}
}

func TestChecks(t *testing.T) {
	one, many := int64(1), int64(9)
	field := &schema{
		Type: "array", MinItems: &one, MaxItems: &many, Default: &apiextensionsv1.JSON{Raw: []byte("[]")},
		XListMapKeys: []string{"zone", "capacityType"}, XValidations: apiextensionsv1.ValidationRules{{Rule: "true", Message: "it must be so"}},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "string"}},
	}
	want := []string{"required", "default `[]`", "1 to 9 items", "unique by zone and capacityType", "it must be so"}
	if diff := cmp.Diff(want, checks(field, true)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The values of a map can be objects. Their fields are in a section of their own, and the rules of the map with the map.
func TestMapOfObjects(t *testing.T) {
	one := int64(1)
	field := &schema{
		Type: "object", MinProperties: &one, XValidations: apiextensionsv1.ValidationRules{{Rule: "true", Message: "it must be so"}},
		AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &schema{
			MaxProperties: &one, Properties: map[string]schema{"a": {Type: "string"}},
		}},
	}
	if diff := cmp.Diff([]string{"not empty", "it must be so"}, checks(field, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var b strings.Builder
	section(&b, "spec", &schema{Properties: map[string]schema{"all": *field}}, "")
	for _, want := range []string{"| `all` | map of [objects](#specallkey) |", "\n## spec.all[KEY]\n", "| `a` | string |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("got %s, want %q in it", b.String(), want)
		}
	}
}

func TestBounds(t *testing.T) {
	field := &schema{Type: "integer", Minimum: new(0.0), Maximum: new(31536000.0)}
	if diff := cmp.Diff([]string{"at least 0", "at most 31536000"}, bounds(field)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestShortened(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("word ", mostWords))
	for name, tc := range map[string]struct{ meaning, short, rest string }{
		"short":        {"a size of 1.5 m. Not more.<br>*required*", "a size of 1.5 m. Not more.<br>*required*", ""},
		"sentences":    {"a size of 1.5 m. " + words, "a size of 1.5 m. More below.", words},
		"a line":       {"a size.<br>" + words, "a size. More below.", words},
		"one sentence": {"a " + words + ".", "see below", "a " + words + "."},
	} {
		if short, rest := shortened(tc.meaning); short != tc.short || rest != tc.rest {
			t.Errorf("%s: got %q and %q", name, short, rest)
		}
	}
}
