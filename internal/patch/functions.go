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
var builtins = []string{"and", "eq", "ge", "gt", "le", "len", "lt", "ne", "not", "or", "slice"}

// fromSprig are the functions of sprig that Go templates can use as they are: their results depend on nothing but their
// arguments, always have the same order, and need time and memory in proportion to them. None of them changes its
// arguments, so a value can never contain itself.
var fromSprig = []string{
	"add", "add1", "addf", "append", "atoi", "b64dec", "b64enc", "cat", "ceil", "coalesce", "compact", "concat",
	"contains", "default", "dict", "div", "empty", "fail", "first", "float64", "floor", "get", "has", "hasKey",
	"hasPrefix", "hasSuffix", "initial", "int", "int64", "last", "list", "lower", "max", "min", "mod", "mul", "omit",
	"pick", "prepend", "quote", "rest", "reverse", "round", "sha256sum", "squote", "sub", "subf", "substr", "ternary",
	"title", "toJson", "toRawJson", "toString", "trim", "trimPrefix", "trimSuffix", "trunc", "untitle", "upper",
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
		// Those of sprig have no order, or sort their argument in place.
		"keys": keys, "sortAlpha": sortAlpha, "values": valuesOf,
	})
	functions = lo.MapValues(functions, func(function any, name string) any { return b.within(function, slow[name]) })
	functions["index"] = index // like builtins: it needs no time, and its result is no larger than its arguments
	return functions
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

// index returns an item of lists and maps in each other. It is that of text/template, except that a key which a map
// lacks is the empty string, as with get: the other one returns nothing, and a Go template renders that to <no value>.
func index(from any, at ...any) (any, error) {
	for _, each := range at {
		items, key := reflect.ValueOf(from), reflect.ValueOf(each)
		switch {
		case items.Kind() == reflect.Map && key.Kind() == reflect.String:
			from = ""
			if item := items.MapIndex(key); item.IsValid() {
				from = item.Interface()
			}
		case (items.Kind() == reflect.Slice || items.Kind() == reflect.String) && key.CanInt():
			if key.Int() < 0 || key.Int() >= int64(items.Len()) {
				return nil, fmt.Errorf("there is no item %d of %d", key.Int(), items.Len())
			}
			from = items.Index(int(key.Int())).Interface()
		default:
			return nil, fmt.Errorf("it needs a map and text, or a list and a number, found %T and %T", from, each)
		}
	}
	return from, nil
}

// keys returns the keys of maps: those of the first one, sorted, then those of the next one.
func keys(from ...map[string]any) []string {
	return lo.FlatMap(from, func(each map[string]any, _ int) []string { return slices.Sorted(maps.Keys(each)) })
}

// valuesOf returns the values of a map, in the order of its keys.
func valuesOf(from map[string]any) []any {
	return lo.Map(keys(from), func(key string, _ int) any { return from[key] })
}

func sortAlpha(from any) []string { return slices.Sorted(slices.Values(texts(from))) }
