// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// added returns a patch that adds what a template renders to.
func added(template string) []v1alpha1.Patch {
	return []v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "add", Path: "/spec/x", ValueFrom: from(template)})}
}

// rendered returns the value to which a template renders.
func rendered(t *testing.T, template string, variables Variables) any {
	t.Helper()
	compiled, err := Compile(added(template))
	if err != nil {
		t.Fatal(err)
	}
	operations, err := compiled.Render(v1alpha1.PatchTargetInfrastructure, variables)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := operations.Apply(base())
	if err != nil {
		t.Fatal(err)
	}
	return spec["x"]
}

// letters is a Go template with a list of 500 letters.
var letters = `{{ $list := splitList "" "` + strings.Repeat("x", 500) + `" }}`

// unbounded are Go templates that would take too long, or need too much memory.
var unbounded = map[string]struct {
	template string
	want     []string // of the error
}{
	"a range over a number":                   {`{{ range 9000000000000000000 }}{{ end }}`, []string{"range 9000000000000000000", "a list or a map"}},
	"a range over a number of a variable":     {`{{ $n := 9000000000000000000 }}{{ range $n }}{{ end }}`, []string{"range", "a list or a map"}},
	"a range over the result of a function":   {`{{ range add 1 9000000000000000000 }}{{ end }}`, []string{"range add 1", "a list or a map"}},
	"a range over a length":                   {`{{ range len .zone }}{{ end }}`, []string{"range len .zone", "a list or a map"}},
	"a range over a variable of the offering": {`{{ range .maxPods }}{{ end }}`, []string{"range", "a list or a map"}},
	"ranges in ranges": {
		letters + strings.Repeat("{{ range $list }}", 5) + strings.Repeat("{{ end }}", 5), []string{"range", "1 MiB"},
	},
	"a function in a range": {
		letters + "{{ range $list }}{{ range $list }}{{ $y := upper . }}{{ end }}{{ end }}", []string{"range", "1 MiB"},
	},
	"doubled text":                      {`{{ $x := "xxxxxxxx" }}` + strings.Repeat("{{ $x = print $x $x }}", 30), []string{"print", "64 KiB"}},
	"doubled text with printf":          {`{{ $x := "xxxxxxxx" }}` + strings.Repeat(`{{ $x = printf "%s%s" $x $x }}`, 30), []string{"printf", "64 KiB"}},
	"doubled text in a range":           {`{{ $x := "xx" }}` + letters + "{{ range $list }}{{ $x = cat $x $x }}{{ end }}", []string{"cat", "64 KiB"}},
	"a doubled list":                    {`{{ $x := list "x" }}` + strings.Repeat("{{ $x = concat $x $x }}", 40) + "{{ toJson $x }}", []string{"concat", "64 KiB"}},
	"a list that contains a list twice": {`{{ $x := list "x" }}` + strings.Repeat("{{ $x = list $x $x }}", 40) + "{{ toJson $x }}", []string{"list", "64 KiB"}},
	"a map that contains a map twice":   {`{{ $x := dict "x" 1 }}` + strings.Repeat(`{{ $x = dict "a" $x "b" $x }}`, 40) + "{{ $x }}", []string{"dict", "64 KiB"}},
	"the same argument very often": {
		`{{ $x := repeat 60000 "x" }}{{ print ` + strings.Repeat("$x ", 3000) + "}}", []string{"print", "64 KiB"},
	},
	"a width":                           {`{{ printf "%999999d" 1 }}`, []string{"printf", "%999999d", "not allowed"}},
	"a precision":                       {`{{ printf "%.999999f" 1.0 }}`, []string{"printf"}},
	"a width as an argument":            {`{{ printf "%*d" 999999 1 }}`, []string{"printf"}},
	"an argument by number":             {`{{ printf "` + strings.Repeat("%[1]v", 1000) + `" (repeat 60000 "x") }}`, []string{"printf"}},
	"repeated text":                     {`{{ repeat 1000000000 "x" }}`, []string{"repeat", "64 KiB"}},
	"indented text":                     {`{{ indent 1000000000 "x" }}`, []string{"indent", "64 KiB"}},
	"indented lines":                    {`{{ nindent 30000 "a\nb\nc" }}`, []string{"nindent", "64 KiB"}},
	"a long separator":                  {letters + `{{ join (repeat 30000 "x") $list }}`, []string{"join", "64 KiB"}},
	"a long replacement":                {`{{ replace "x" (repeat 1000 "y") (repeat 1000 "x") }}`, []string{"replace", "64 KiB"}},
	"a replacement between all letters": {`{{ replace "" (repeat 1000 "y") (repeat 1000 "x") }}`, []string{"replace", "64 KiB"}},
	"split into letters":                {`{{ splitList "" (repeat 60000 "x") }}`, []string{"splitList", "64 KiB"}},
	"a repeated pattern":                {`{{ regexMatch "((a{100}){10}){10}" "a" }}`, []string{"regexMatch", "{"}},
	"a long pattern":                    {`{{ regexMatch (repeat 1000 "a") "a" }}`, []string{"regexMatch", "128"}},
	"a pattern for a long text":         {`{{ regexReplaceAll ".*z|." (repeat 60000 "a") "b" }}`, []string{"regexReplaceAll", "1 KiB"}},
	"a list of numbers":                 {`{{ until 1000000000 }}`, []string{"until"}},
	"a list of numbers in steps":        {`{{ untilStep 0 1000000000 1 }}`, []string{"untilStep"}},
	"a sequence":                        {`{{ seq 1 1000000000 }}`, []string{"seq"}},
	"a map in itself":                   {`{{ $x := dict }}{{ set $x "x" $x }}`, []string{"set"}},
	"a template that includes itself":   {`{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`, []string{"define"}},
	"a block":                           {`{{ block "x" . }}{{ end }}`, []string{"template"}},
	"a template of another patch":       {`{{ template "template" }}`, []string{"template"}},
	"deep parentheses":                  {"{{ " + strings.Repeat("(", 4000) + "1" + strings.Repeat(")", 4000) + " }}", []string{"nested"}},
	"deep conditions":                   {strings.Repeat("{{ if 1 }}", 500) + "x" + strings.Repeat("{{ end }}", 500), []string{"nested"}},
	"a long template":                   {strings.Repeat("x", 10241), []string{"10240"}},
	"aliases": {
		"a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\n" +
			"d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e, *e]\n",
		[]string{"&a", "anchor"},
	},
	"64 KiB and a byte": {`{{ repeat 32768 "x" }}{{ repeat 32769 "x" }}`, []string{"more than 64 KiB"}},
	"an alias":          {"{{ print \"[&a x, *a]\" }}", []string{"anchor"}},
	"deep YAML":         {strings.Repeat("[", 5000) + strings.Repeat("]", 5000), []string{"nested"}},
}

// The error for a template that would take too long, or need too much memory, names the construct and the reason.
func TestTemplatesWithoutBound(t *testing.T) {
	for name, tc := range unbounded {
		t.Run(name, func(t *testing.T) {
			_, err := apply(added(tc.template))
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range append(tc.want, "spec.patches[0].jsonPatches[0]") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %.500q, want it to contain %q", err, want)
				}
			}
		})
	}
}

// A template renders to at most 64 KiB.
func TestRenderedSize(t *testing.T) {
	if text := rendered(t, `{{ repeat 32768 "x" }}{{ repeat 32768 "x" }}`, variables); len(text.(string)) != 64<<10 {
		t.Errorf("got %d bytes", len(text.(string)))
	}
}

// All patches of a template together have limits. The error has the number and the limit.
func TestTotals(t *testing.T) {
	patches := func(count, operations int, operation v1alpha1.JSONPatch) []v1alpha1.Patch {
		var patches []v1alpha1.Patch
		for range count {
			many := make([]v1alpha1.JSONPatch, operations)
			for i := range many {
				many[i] = operation
			}
			patches = append(patches, infrastructure("", many...))
		}
		return patches
	}
	value := func(size int) v1alpha1.JSONPatch {
		return v1alpha1.JSONPatch{Op: "add", Path: "/spec/x", Value: raw(`"` + strings.Repeat("x", size) + `"`)}
	}
	large := v1alpha1.JSONPatch{Op: "add", Path: "/spec/x", ValueFrom: from(`{{ repeat 60000 "x" }}`)}
	for name, tc := range map[string]struct {
		patches []v1alpha1.Patch
		want    string // of the error; empty: none
	}{
		"1000 operations":        {patches: patches(10, 100, value(10))},
		"1001 operations":        {patches: append(patches(10, 100, value(10)), patches(1, 1, value(1))...), want: "have 1001 operations, and at most 1000"},
		"100 patches of 100":     {patches: patches(100, 100, value(1)), want: "have 10000 operations, and at most 1000"},
		"200 KiB":                {patches: patches(2, 100, value(1024))},
		"300 KiB":                {patches: patches(3, 100, value(1024)), want: "have 309900 bytes, and at most 262144"},
		"4 that render to 60 KB": {patches: patches(2, 2, large)},
		"5 that render to 60 KB": {patches: patches(5, 1, large), want: "render to more than 256 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := apply(tc.patches)
			if tc.want == "" && err != nil || tc.want != "" && !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("got %.500v, want %q", err, tc.want)
			}
		})
	}
}
