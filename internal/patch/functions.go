// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/Masterminds/sprig/v3"
	"github.com/samber/lo"
)

// builtins are the functions of text/template that Go templates can use as they are. Their results are no larger than
// their arguments. The others print, escape for other languages than YAML, or call functions.
var builtins = []string{"and", "eq", "ge", "gt", "index", "le", "len", "lt", "ne", "not", "or", "slice"}

// fromSprig are the functions of sprig that Go templates can use as they are: their results depend on nothing but their
// arguments, always have the same order, and need time and memory in proportion to them. None of them changes its
// arguments, so a value can never contain itself.
var fromSprig = []string{
	"add", "add1", "addf", "append", "atoi", "b64dec", "b64enc", "cat", "ceil", "coalesce", "compact", "concat", "contains",
	"default", "dict", "div", "empty", "fail", "first", "float64", "floor", "has", "hasPrefix", "hasSuffix", "initial", "int",
	"int64", "last", "list", "lower", "max", "min", "mod", "mul", "prepend", "quote", "rest", "reverse", "round", "sha256sum",
	"squote", "sub", "subf", "substr", "ternary", "title", "toJson", "toRawJson", "toString", "trim", "trimPrefix",
	"trimSuffix", "trunc", "untitle", "upper",
}

// slow are the functions that take longer than others, with the bytes that they cost in addition for each argument.
var slow = map[string]int{"addf": 256, "divf": 256, "mulf": 256, "subf": 256, "semverCompare": 2048}

var sprigFunctions = sprig.HermeticTxtFuncMap()

// functions returns the functions that Go templates can use besides builtins, within the budget.
func (b *budget) functions() map[string]any {
	functions := lo.PickByKeys(sprigFunctions, fromSprig)
	maps.Copy(functions, map[string]any{
		// Those of text/template and sprig, with limits for what they build.
		"indent": indent, "join": join, "nindent": nindent, "print": fmt.Sprint, "printf": printf, "println": fmt.Sprintln,
		"repeat": repeat, "replace": replace, "semverCompare": semverCompare, "split": split, "splitList": splitList, "trimAll": trimAll,
		"regexFind": b.regexFind, "regexMatch": b.regexMatch, "regexReplaceAll": b.regexReplaceAll,
		// Those of sprig multiply ever longer decimals.
		"divf": stepwise("divf"), "mulf": stepwise("mulf"),
		// Those of sprig have no order, sort their argument in place, or do not accept the maps of variables.
		"get": get, "hasKey": hasKey, "keys": keys, "sortAlpha": sortAlpha, "values": valuesOf,
	})
	return lo.MapValues(functions, func(function any, name string) any { return b.within(function, slow[name]) })
}

// stepwise returns a function of sprig for floating-point numbers that rounds each intermediate result.
func stepwise(name string) func(any, ...any) float64 {
	function := sprigFunctions[name].(func(any, ...any) float64)
	return func(first any, others ...any) float64 {
		result := function(first)
		for _, other := range others {
			result = function(result, other)
		}
		return result
	}
}

// entries returns a map that has strings as keys.
func entries(from any) (reflect.Value, error) {
	if value := reflect.ValueOf(from); value.Kind() == reflect.Map && value.Type().Key().Kind() == reflect.String {
		return value, nil
	}
	return reflect.Value{}, fmt.Errorf("it needs a map, and this is of type %T", from)
}

func get(from any, key string) (any, error) {
	value, err := entries(from)
	if err != nil {
		return nil, err
	}
	if entry := value.MapIndex(reflect.ValueOf(key)); entry.IsValid() {
		return entry.Interface(), nil
	}
	return "", nil
}

func hasKey(from any, key string) (bool, error) {
	value, err := entries(from)
	return err == nil && value.MapIndex(reflect.ValueOf(key)).IsValid(), err
}

// keys returns the keys of maps: those of the first one, sorted, then those of the next one.
func keys(from ...any) ([]string, error) {
	all := []string{}
	for _, each := range from {
		value, err := entries(each)
		if err != nil {
			return nil, err
		}
		some := lo.Map(value.MapKeys(), func(key reflect.Value, _ int) string { return key.String() })
		slices.Sort(some)
		all = append(all, some...)
	}
	return all, nil
}

// valuesOf returns the values of a map, in the order of its keys.
func valuesOf(from any) ([]any, error) {
	names, err := keys(from)
	return lo.Map(names, func(name string, _ int) any { return reflect.ValueOf(from).MapIndex(reflect.ValueOf(name)).Interface() }), err
}

func sortAlpha(from any) []string { return slices.Sorted(slices.Values(texts(from))) }
