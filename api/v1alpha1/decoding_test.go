// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/samber/lo"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// What the API server accepts can be decoded: one object that cannot makes every typed list of its kind fail, and
// with it the caches of the operator. For each field, this tries values at the bounds of its schema. Rules of the
// objects around a field do not count, so that each field is safe by itself.
func TestWhatIsAcceptedCanBeDecoded(t *testing.T) {
	for file, empty := range map[string]func() runtime.Object{
		"karpentermachinetemplates": func() runtime.Object { return &v1alpha1.KarpenterMachineTemplate{} },
		"instancetypecatalogs":      func() runtime.Object { return &v1alpha1.InstanceTypeCatalog{} },
	} {
		t.Run(file, func(t *testing.T) {
			root := readSchema(t, file)
			delete(root.Properties, "metadata") // the API server decodes it itself
			fields, tried := 0, 0
			eachLeaf(&root, nil, func(path []string, leaf *apiextensions.JSONSchemaProps) {
				accepts := validator(t, leaf)
				accepted := 0
				for _, candidate := range candidates(leaf) {
					tried++
					stored, ok := accepts(candidate)
					if !ok {
						continue
					}
					accepted++
					if err := decode(nest(path, stored), empty); err != nil {
						t.Errorf("%s accepts %.80s: %v", strings.Join(path, "."), stored, err)
						return
					}
				}
				if fields++; accepted == 0 {
					t.Errorf("%s accepts no value of this test", strings.Join(path, "."))
				}
			})
			t.Logf("%d values of %d fields", tried, fields)
			if fields == 0 {
				t.Error("no field was found")
			}
		})
	}
}

// readSchema returns the schema of a CustomResourceDefinition.
func readSchema(t *testing.T, plural string) apiextensions.JSONSchemaProps {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", v1alpha1.Group+"_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(content, crd); err != nil {
		t.Fatal(err)
	}
	root := apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &root, nil); err != nil {
		t.Fatal(err)
	}
	return root
}

// eachLeaf visits the fields that have no fields of their own. In a path, * is an entry of a map and 0 one of a list.
func eachLeaf(at *apiextensions.JSONSchemaProps, path []string, visit func([]string, *apiextensions.JSONSchemaProps)) {
	down := func(name string, to *apiextensions.JSONSchemaProps) {
		eachLeaf(to, append(slices.Clone(path), name), visit)
	}
	switch {
	case len(at.Properties) > 0:
		for _, name := range slices.Sorted(maps.Keys(at.Properties)) {
			down(name, new(at.Properties[name]))
		}
	case at.AdditionalProperties != nil && at.AdditionalProperties.Schema != nil:
		down("*", at.AdditionalProperties.Schema)
	case at.Items != nil:
		down("0", at.Items.Schema)
	default:
		visit(path, at)
	}
}

// nest returns an object that has only a field, and in it a value.
func nest(path []string, value string) string {
	for _, name := range slices.Backward(path) {
		value = lo.Ternary(name == "0", "["+value+"]", fmt.Sprintf("{%q:%s}", name, value))
	}
	return value
}

// decode decodes an object as clients do, writes it, and decodes that again.
func decode(content string, empty func() runtime.Object) error {
	object := empty()
	if err := utiljson.Unmarshal([]byte(content), object); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	written, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	if err := utiljson.Unmarshal(written, empty()); err != nil {
		return fmt.Errorf("decoding %s, which is how it was encoded: %w", written, err)
	}
	return nil
}

// validator returns a function that returns how the API server stores a value, and whether it accepts it.
func validator(t *testing.T, leaf *apiextensions.JSONSchemaProps) func(string) (string, bool) {
	t.Helper()
	structural, err := schema.NewStructural(leaf)
	if err != nil {
		t.Fatal(err)
	}
	bySchema, _, err := validation.NewSchemaValidator(leaf)
	if err != nil {
		t.Fatal(err)
	}
	byRules := cel.NewValidator(structural, false, math.MaxUint64)
	return func(text string) (string, bool) {
		var value any
		if utiljson.Unmarshal([]byte(text), &value) != nil || len(validation.ValidateCustomResource(nil, value, bySchema)) > 0 {
			return "", false
		}
		if byRules != nil && value != nil {
			if errs, _ := byRules.Validate(t.Context(), nil, structural, value, nil, math.MaxInt64); len(errs) > 0 {
				return "", false
			}
		}
		stored, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(stored), true
	}
}

// candidates returns values for a field, as JSON.
func candidates(leaf *apiextensions.JSONSchemaProps) []string {
	texts := []string{"", "x", "0", "-1", "1.5", "null", "true", "Infinity", "1e1.5", "1e999999999", "99999999999h", "1h1h", "/spec/a", "µ", strings.Repeat("9", 400), strings.Repeat("é", 63)}
	texts = append(texts, times...)
	for _, of := range append([]apiextensions.JSONSchemaProps{*leaf}, leaf.AllOf...) {
		if of.Pattern != "" {
			texts = append(texts, matching(of.Pattern)...)
		}
	}
	result := []string{"null", "true", "{}", "[]", `{"a":"b"}`, `["a"]`, "0", "1", "-1", "1.0", "1.5", "1e3", "-0"}
	for _, bits := range []int{31, 32, 53, 63, 64, 70} {
		power := math.Pow(2, float64(bits))
		result = append(result, fmt.Sprintf("%.0f", power), fmt.Sprintf("%.0f", -power))
	}
	result = append(result, "2147483647", "-2147483649", "9223372036854775807", "-9223372036854775809", "1e30", "1e308")
	for _, bound := range []float64{lo.FromPtr(leaf.Minimum), lo.FromPtr(leaf.Maximum)} {
		result = append(result, fmt.Sprintf("%.0f", bound-1), fmt.Sprintf("%.0f", bound), fmt.Sprintf("%.0f", bound+1))
	}
	for _, value := range leaf.Enum {
		texts = append(texts, fmt.Sprint(value))
	}
	for _, text := range texts {
		result = append(result, string(lo.Must(json.Marshal(text))))
	}
	return result
}

// times are what the format date-time accepts, and more.
var times = []string{
	"2026-11-25T00:00:00Z", "2026-11-25T00:00:00.123456789Z", "2026-11-25T00:00:00+02:00", "2026-11-25T00:00:00", "2026-11-25t00:00:00z",
	"2026-11-25T00:00:00x5Z", "2026-11-25T00:00:00+99:99", "2026-11-25T00:00:00ZTZ", "2026-02-30T00:00:00Z", "2026-11-25T24:00:00Z",
	"2026-11-25T00:00:60Z", "0000-01-01T00:00:00+01:00", "9999-12-31T23:59:59-23:59", "2026-11-25", "2026-11-25 00:00:00Z",
}

// matching returns strings that match a pattern: each alternative of its parts, the first and the last character of
// each class, and the shortest and the longest repetition.
func matching(pattern string) []string {
	expression, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	return variants(expression)
}

const (
	// manyTimes is how often something is repeated that has no upper bound.
	manyTimes = 40
	// mostVariants is how many strings are kept of a part of a pattern.
	mostVariants = 600
)

func variants(e *syntax.Regexp) []string {
	switch e.Op {
	case syntax.OpLiteral:
		return []string{string(e.Rune)}
	case syntax.OpCharClass:
		return lo.Uniq(lo.Map(e.Rune, func(r rune, _ int) string { return string(min(r, 'ÿ')) }))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return []string{"a", "µ"}
	case syntax.OpCapture:
		return variants(e.Sub[0])
	case syntax.OpConcat:
		result := []string{""}
		for _, part := range e.Sub {
			result = joined(result, variants(part))
		}
		return result
	case syntax.OpAlternate:
		return lo.FlatMap(e.Sub, func(part *syntax.Regexp, _ int) []string { return variants(part) })
	case syntax.OpQuest:
		return append([]string{""}, variants(e.Sub[0])...)
	case syntax.OpStar:
		return append([]string{""}, repeated(variants(e.Sub[0]), 1, manyTimes)...)
	case syntax.OpPlus:
		return repeated(variants(e.Sub[0]), 1, manyTimes)
	case syntax.OpRepeat:
		return repeated(variants(e.Sub[0]), e.Min, lo.Ternary(e.Max < 0, manyTimes, e.Max))
	default: // the beginning and the end of the text
		return []string{""}
	}
}

// repeated returns each of the parts the least and the most times, and all of them together.
func repeated(parts []string, least, most int) []string {
	result := []string{strings.Join(parts[:min(len(parts), most)], "")}
	for _, part := range parts {
		result = append(result, strings.Repeat(part, least), strings.Repeat(part, most))
	}
	return lo.Uniq(result)
}

// joined returns each beginning with each end or, if these are too many, an even choice of them.
func joined(beginnings, ends []string) []string {
	all := make([]string, 0, len(beginnings)*len(ends))
	for _, beginning := range beginnings {
		for _, end := range ends {
			all = append(all, beginning+end)
		}
	}
	step := len(all)/mostVariants + 1
	return lo.Filter(all, func(_ string, i int) bool { return i%step == 0 })
}
