// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// functionCases have a template for each function that the guide documents.
var functionCases = map[string]struct {
	template string
	want     any // as JSON
}{
	"add":             {"{{ add 1 2 3 }}", int64(6)},
	"add1":            {"{{ add1 1 }}", int64(2)},
	"addf":            {"{{ addf 0.1 0.2 }}", 0.3},
	"and":             {`{{ and .zone "x" }}`, "x"},
	"append":          {`{{ append (list "a") "b" | toJson }}`, []any{"a", "b"}},
	"atoi":            {`{{ atoi "12" | add1 }}`, int64(13)},
	"b64dec":          {`{{ b64dec "YQ==" }}`, "a"},
	"b64enc":          {`{{ b64enc "a" }}`, "YQ=="},
	"cat":             {`{{ cat .zone 1 }}`, "us-east-1a 1"},
	"ceil":            {"{{ ceil 1.5 }}", int64(2)},
	"coalesce":        {`{{ coalesce .reservationID .zone }}`, "us-east-1a"},
	"compact":         {`{{ list "a" "" "b" | compact | toJson }}`, []any{"a", "b"}},
	"concat":          {`{{ concat (list "a") (list "b") | toJson }}`, []any{"a", "b"}},
	"contains":        {`{{ .zone | contains "east" }}`, true},
	"default":         {`{{ .reservationID | default "none" }}`, "none"},
	"dict":            {`{{ dict "b" 1 "a" 2 | toJson }}`, map[string]any{"a": int64(2), "b": int64(1)}},
	"div":             {"{{ div 7 2 }}", int64(3)},
	"divf":            {"{{ divf 7 2 2 }}", 1.75},
	"empty":           {"{{ empty .reservationID }}", true},
	"eq":              {`{{ eq .zone "x" "us-east-1a" }}`, true},
	"fail":            {`{{ if eq .zone "x" }}{{ fail "no" }}{{ end }}ok`, "ok"},
	"first":           {`{{ list "a" "b" | first }}`, "a"},
	"float64":         {`{{ float64 "1.5" }}`, 1.5},
	"floor":           {"{{ floor 1.5 }}", int64(1)},
	"ge":              {"{{ ge 2 2 }}", true},
	"get":             {`{{ get .labels "x.y/size" }}{{ get .labels "none" }}{{ get (dict "a" "b") "a" }}`, "2b"},
	"gt":              {"{{ gt 2 2 }}", false},
	"has":             {`{{ has .zone (list "a" "us-east-1a") }}`, true},
	"hasKey":          {`{{ hasKey .labels "x.y/size" }}`, true},
	"hasPrefix":       {`{{ hasPrefix "us" .zone }}`, true},
	"hasSuffix":       {`{{ hasSuffix "us" .zone }}`, false},
	"indent":          {`{{ indent 2 "a\nb" | quote }}`, "  a\n  b"},
	"index":           {`{{ index .labels "x.y/size" }}{{ index .labels "none" }}{{ index (dict "a" (list "b" "c")) "a" 1 }}{{ index "a" 0 }}`, "2c97"},
	"initial":         {`{{ list "a" "b" | initial | toJson }}`, []any{"a"}},
	"int":             {`{{ int "7" }}`, int64(7)},
	"int64":           {`{{ int64 1.5 }}`, int64(1)},
	"join":            {`{{ list "a" 1 | join "," }}`, "a,1"},
	"keys":            {`{{ keys .labels (dict "b" 1 "a" 2) | join "," }}`, "kubernetes.io/arch,x.y/size,a,b"},
	"last":            {`{{ list "a" "b" | last }}`, "b"},
	"le":              {"{{ le 2 2 }}", true},
	"len":             {"{{ len .labels }}", int64(2)},
	"list":            {`{{ list 1 "a" true | toJson }}`, []any{int64(1), "a", true}},
	"lower":           {`{{ lower "A" }}`, "a"},
	"lt":              {`{{ lt "a" "b" }}`, true},
	"max":             {"{{ max 1 3 2 }}", int64(3)},
	"min":             {"{{ min 2 1 3 }}", int64(1)},
	"mod":             {"{{ mod 7 4 }}", int64(3)},
	"mul":             {"{{ mul 2 60 }}", int64(120)},
	"mulf":            {"{{ mulf 0.1 3 }}", 0.3},
	"ne":              {`{{ ne .zone "x" }}`, true},
	"nindent":         {`{{ nindent 1 "a" | quote }}`, "\n a"},
	"not":             {"{{ not .zone }}", false},
	"omit":            {`{{ omit .labels "kubernetes.io/arch" "none" | toJson }}`, map[string]any{"x.y/size": "2"}},
	"or":              {`{{ or .reservationID "x" }}`, "x"},
	"pick":            {`{{ pick .labels "x.y/size" "none" | toJson }}`, map[string]any{"x.y/size": "2"}},
	"prepend":         {`{{ prepend (list "a") "b" | toJson }}`, []any{"b", "a"}},
	"print":           {`{{ print .zone "-" .region }}`, "us-east-1a-us-east-1"},
	"printf":          {`{{ printf "%s-%03d %5.1f %q %% %-3vx %x" .zone 7 1.25 "a" true "a" | quote }}`, `us-east-1a-007   1.2 "a" % truex 61`},
	"println":         {`{{ println "a" | quote }}`, "a\n"},
	"quote":           {`{{ quote "1" }}`, "1"},
	"regexFind":       {`{{ regexFind "[0-9]+[a-z]" .zone }}`, "1a"},
	"regexMatch":      {`{{ regexMatch "^us-(?:east|west)-" .zone }}`, true},
	"regexReplaceAll": {`{{ regexReplaceAll "([0-9])([a-z])" .zone "${2}_$1" }}`, "us-east-a_1"},
	"repeat":          {`{{ repeat 3 "ab" }}`, "ababab"},
	"replace":         {`{{ replace "-" "" .zone }}`, "useast1a"},
	"rest":            {`{{ list "a" "b" | rest | toJson }}`, []any{"b"}},
	"reverse":         {`{{ list "a" "b" | reverse | toJson }}`, []any{"b", "a"}},
	"round":           {"{{ round 1.256 2 }}", 1.26},
	"semverCompare":   {`{{ semverCompare ">=1.36.0" .kubernetesVersion }}`, true},
	"sha256sum":       {`{{ sha256sum "a" | trunc 8 | quote }}`, "ca978112"},
	"slice":           {`{{ slice .zone 3 7 }}`, "east"},
	"sortAlpha":       {`{{ $list := splitList "," "b,a" }}{{ sortAlpha $list | join "," }},{{ join "," $list }}`, "a,b,b,a"},
	"split":           {`{{ (split "-" .zone)._1 }}`, "east"},
	"splitList":       {`{{ splitList "-" .zone | toJson }}`, []any{"us", "east", "1a"}},
	"squote":          {`{{ squote 1 }}`, "1"},
	"sub":             {"{{ sub 3 1 }}", int64(2)},
	"subf":            {"{{ subf 0.3 0.1 }}", 0.2},
	"substr":          {`{{ substr 0 2 .zone }}`, "us"},
	"ternary":         {`{{ eq .capacityType "spot" | ternary "cheap" "dear" }}`, "cheap"},
	"title":           {`{{ title "a b" }}`, "A B"},
	"toJson":          {`{{ .labels | toJson }}`, map[string]any{"kubernetes.io/arch": "amd64", "x.y/size": "2"}},
	"toRawJson":       {`{{ list "<" | toRawJson }}`, []any{"<"}},
	"toString":        {`{{ toString 1 | quote }}`, "1"},
	"trim":            {`{{ trim " a " | quote }}`, "a"},
	"trimAll":         {`{{ trimAll "v." "v1.2.v" | quote }}`, "1.2"},
	"trimPrefix":      {`{{ .kubernetesVersion | trimPrefix "v" }}`, "1.36.3"},
	"trimSuffix":      {`{{ .zone | trimSuffix "a" }}`, "us-east-1"},
	"trunc":           {`{{ trunc 2 .zone }}`, "us"},
	"untitle":         {`{{ untitle "AB" }}`, "aB"},
	"upper":           {`{{ upper "a" }}`, "A"},
	"values":          {`{{ values .labels | join "," }},{{ values (dict "b" 1 "a" 2) | join "," }}`, "amd64,2,2,1"},
}

// Each function that the guide documents can be used.
func TestFunctions(t *testing.T) {
	for name, tc := range functionCases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rendered(t, tc.template, variables)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	var documented, tested, allowed []string
	for _, row := range tableInGuide(t, "| functions | limits |") {
		for _, match := range regexp.MustCompile("`([a-zA-Z0-9]+)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			documented = append(documented, match[1])
		}
	}
	for name := range functionCases {
		tested = append(tested, name)
	}
	for name := range newTemplates().functions {
		if name != itemsOf {
			allowed = append(allowed, name)
		}
	}
	allowed = append(allowed, builtins...)
	for name, names := range map[string][]string{"documented": documented, "allowed": allowed} {
		slices.Sort(names)
		slices.Sort(tested)
		if diff := cmp.Diff(tested, names); diff != "" {
			t.Errorf("%s (-tested +%s):\n%s", name, name, diff)
		}
	}
}

// All functions for maps accept each map that a Go template can have, and a key that it lacks is empty text.
func TestFunctionsForMaps(t *testing.T) {
	with := variables
	with.Labels = map[string]string{"_0": "a", "_1": "b"}
	with.KubeReserved = with.Labels
	for _, from := range []string{
		".labels", "$.kubeReserved", `(get . "labels")`, `(split "," "a,b")`, `(dict "_1" "b" "_0" "a")`, `(pick .labels "_0" "_1")`, `(omit .labels "x")`,
		`(index (list .labels) 0)`, `(dict "x" .labels).x`,
	} {
		t.Run(from, func(t *testing.T) {
			const template = `{{ $map := MAP }}
- {{ get $map "_1" }}{{ get $map "x" }}
- {{ index $map "_1" }}{{ index $map "x" }}
- {{ $map._1 }}
- {{ hasKey $map "_1" }} {{ hasKey $map "x" }}
- {{ pick $map "_1" "x" | toJson }}
- {{ omit $map "_1" "x" | toJson }}
- {{ keys $map | join " " }} {{ values $map | join " " }} {{ len $map }}
- {{ range $key, $value := $map }}{{ $key }}={{ $value }} {{ end }}
- {{ dict "in" $map | toJson }}
- {{ eq (index $map "x") "" }} {{ $map }}`
			want := []any{"b", "b", "b", "true false", map[string]any{"_1": "b"}, map[string]any{"_0": "a"}, "_0 _1 a b 2", "_0=a _1=b",
				map[string]any{"in": map[string]any{"_0": "a", "_1": "b"}}, "true map[_0:a _1:b]"}
			if diff := cmp.Diff(want, rendered(t, strings.Replace(template, "MAP", from, 1), with)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A function whose result depends on more than its arguments is refused: no Node would match what its offering renders to
// the next time. So are functions that read from outside, that change their arguments, or that need more than the arguments' time.
func TestFunctionsThatAreRefused(t *testing.T) {
	for name, template := range map[string]string{
		"a key":                     `{{ genPrivateKey "ecdsa" }}`,
		"a certificate authority":   `{{ genCA "x" 1 }}`,
		"a certificate":             `{{ genSelfSignedCert "x" nil nil 1 }}`,
		"a password with salt":      `{{ bcrypt "x" }}`,
		"a password file":           `{{ htpasswd "x" "y" }}`,
		"a derived password":        `{{ derivePassword 1 "long" "x" "y" "z" }}`,
		"a nonce":                   `{{ encryptAES "x" "y" }}`,
		"a random order":            `{{ shuffle "abc" }}`,
		"random letters":            `{{ randAlpha 5 }}`,
		"random bytes":              `{{ randBytes 5 }}`,
		"a random number":           `{{ randInt 1 100 }}`,
		"a random id":               `{{ uuidv4 }}`,
		"the time":                  `{{ now }}`,
		"a date":                    `{{ date "2006" 1 }}`,
		"a date in the time zone":   `{{ toDate "2006" "2026" }}`,
		"an age":                    `{{ ago 1 }}`,
		"the environment":           `{{ env "HOME" }}`,
		"text with the environment": `{{ expandenv "$HOME" }}`,
		"the network":               `{{ getHostByName "localhost" }}`,
		"an address in memory":      `{{ printf "%p" .labels }}`,
		"a changed map":             `{{ $x := dict }}{{ $_ := set $x "a" 1 }}`,
		"a map without a key":       `{{ unset (dict "a" 1) "a" }}`,
		"merged maps":               `{{ merge (dict) (dict "a" 1) }}`,
		"a list without duplicates": `{{ uniq (list 1 1) }}`,
		"a call":                    `{{ call .zone }}`,
		"HTML":                      `{{ html .zone }}`,
		"the items of a range":      `{{ range 1 }}{{ end }}`,
		"a function without a name": `{{ _range 1 .labels }}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := apply(added(template))
			if err == nil {
				t.Fatal("got no error")
			}
			called := regexp.MustCompile(`[a-zA-Z0-9_]+`).FindAllString(strings.TrimPrefix(template, "{{ $x := dict }}{{ $_ := "), 1)
			for _, want := range append(called, "spec.patches[0].jsonPatches[0]") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to contain %q", err, want)
				}
			}
		})
	}
}
