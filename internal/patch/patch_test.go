// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

var variables = Variables{
	InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "spot", Region: "us-east-1",
	Architecture: "amd64", OperatingSystem: "linux", Labels: map[string]string{"kubernetes.io/arch": "amd64", "x.y/size": "2"},
	ClusterName: "prod", KubernetesVersion: "v1.36.3", TemplateName: "general",
}

func base() map[string]any {
	return map[string]any{"template": map[string]any{"spec": map[string]any{
		"instanceType": "none",
		"rootVolume":   map[string]any{"size": int64(80)},
		"tags":         []any{"a", "b"},
	}}}
}

func raw(value string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(value)} }

func from(template string) *v1alpha1.JSONPatchValue {
	return &v1alpha1.JSONPatchValue{Template: template}
}

func infrastructure(enabledIf string, operations ...v1alpha1.JSONPatch) v1alpha1.Patch {
	return v1alpha1.Patch{Target: v1alpha1.PatchTargetInfrastructure, EnabledIf: enabledIf, JSONPatches: operations}
}

func apply(patches []v1alpha1.Patch) (map[string]any, error) {
	compiled, err := Compile(patches)
	if err != nil {
		return nil, err
	}
	operations, err := compiled.Render(v1alpha1.PatchTargetInfrastructure, variables)
	if err != nil {
		return nil, err
	}
	if operations.Empty() {
		return base(), nil
	}
	return operations.Apply(base())
}

func TestApply(t *testing.T) {
	const root = "/spec/template/spec/"
	for name, tc := range map[string]struct {
		patches []v1alpha1.Patch
		want    string // of spec.template.spec, as JSON; the base's if empty
	}{
		"none": {},
		"a value from a template": {
			patches: []v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "replace", Path: root + "instanceType", ValueFrom: from("{{ .instanceType }}")})},
			want:    `{"instanceType": "m5.large", "rootVolume": {"size": 80}, "tags": ["a", "b"]}`,
		},
		"only for another capacity type": {
			patches: []v1alpha1.Patch{infrastructure(`{{ eq .capacityType "on-demand" }}`, v1alpha1.JSONPatch{Op: "remove", Path: root + "instanceType"})},
		},
		"for this capacity type, an empty object": {
			patches: []v1alpha1.Patch{infrastructure(`{{ eq .capacityType "spot" }}`, v1alpha1.JSONPatch{Op: "add", Path: root + "spot", Value: raw(`{}`)})},
			want:    `{"instanceType": "none", "rootVolume": {"size": 80}, "spot": {}, "tags": ["a", "b"]}`,
		},
		"one after the other": {
			patches: []v1alpha1.Patch{
				infrastructure("", v1alpha1.JSONPatch{Op: "add", Path: root + "a", Value: raw(`{"b": 1}`)}),
				infrastructure("", v1alpha1.JSONPatch{Op: "replace", Path: root + "a/b", Value: raw(`2`)}, v1alpha1.JSONPatch{Op: "remove", Path: root + "tags/0"}),
			},
			want: `{"a": {"b": 2}, "instanceType": "none", "rootVolume": {"size": 80}, "tags": ["b"]}`,
		},
		"to the end of a list": {
			patches: []v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "add", Path: root + "tags/-", ValueFrom: from("{{ .zone }}")})},
			want:    `{"instanceType": "none", "rootVolume": {"size": 80}, "tags": ["a", "b", "us-east-1a"]}`,
		},
		"every variable": {
			patches: []v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "replace", Path: root + "tags", ValueFrom: from(
				"[{{ .instanceType }}, {{ .zone }}, {{ .capacityType }}, {{ .reservationID | quote }}, {{ .region }}, {{ .architecture }}, {{ .operatingSystem }}, " +
					`{{ index .labels "x.y/size" | quote }}, {{ .clusterName }}, {{ .kubernetesVersion | trimPrefix "v" | quote }}, {{ .templateName | upper }}]`)})},
			want: `{"instanceType": "none", "rootVolume": {"size": 80}, "tags": ["m5.large", "us-east-1a", "spot", "", "us-east-1", "amd64", "linux", "2", "prod", "1.36.3", "GENERAL"]}`,
		},
		"fields of what is not the variables": {
			patches: []v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "replace", Path: root + "tags", ValueFrom: from(
				`{{ with dict "size" "a" }}[{{ .size }}, {{ $.zone }}{{ if true }}, {{ .size }}{{ end }}{{ end }}` +
					`{{ range list (dict "size" "c") }}, {{ .size }}{{ with "" }}{{ else }}, {{ .size }}{{ end }}]{{ end }}`)})},
			want: `{"instanceType": "none", "rootVolume": {"size": 80}, "tags": ["a", "us-east-1a", "a", "c", "c"]}`,
		},
		"numbers and objects": {
			patches: []v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "replace", Path: root + "rootVolume", ValueFrom: from("size: {{ mul 2 60 }}\ntype: gp3\n")})},
			want:    `{"instanceType": "none", "rootVolume": {"size": 120, "type": "gp3"}, "tags": ["a", "b"]}`,
		},
		"of the other target": {
			patches: []v1alpha1.Patch{{Target: v1alpha1.PatchTargetBootstrap, JSONPatches: []v1alpha1.JSONPatch{{Op: "remove", Path: "/spec/nothing"}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := apply(tc.patches)
			if err != nil {
				t.Fatal(err)
			}
			want := base()
			if tc.want != "" {
				spec := map[string]any{}
				if err := json.Unmarshal([]byte(tc.want), &spec); err != nil {
					t.Fatal(err)
				}
				want = map[string]any{"template": map[string]any{"spec": spec}}
			}
			// As JSON, in which 80 and 80.0 are the same.
			if diff := cmp.Diff(encode(t, want), encode(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	got, err := apply([]v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "add", Path: root + "n", Value: raw("3")})})
	if err != nil {
		t.Fatal(err)
	}
	if n := got["template"].(map[string]any)["spec"].(map[string]any)["n"]; n != int64(3) {
		t.Errorf("a whole number became %T", n)
	}
}

func encode(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// The error names the operation that cannot be applied, and the reason.
func TestBadPatches(t *testing.T) {
	for name, tc := range map[string]struct {
		patches []v1alpha1.Patch
		want    []string
	}{
		"a path that does not exist": {
			[]v1alpha1.Patch{
				infrastructure("", v1alpha1.JSONPatch{Op: "replace", Path: "/spec/template/spec/instanceType", Value: raw(`"x"`)}),
				infrastructure("", v1alpha1.JSONPatch{Op: "remove", Path: "/spec/template/spec/tags"}, v1alpha1.JSONPatch{Op: "replace", Path: "/spec/template/spec/size", Value: raw(`1`)}),
			},
			[]string{"spec.patches[1].jsonPatches[1] (replace /spec/template/spec/size) cannot be applied to the base template"},
		},
		"no parent to add to": {
			[]v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "add", Path: "/spec/template/spec/a/b", Value: raw(`1`)})},
			[]string{"spec.patches[0].jsonPatches[0] (add /spec/template/spec/a/b) cannot be applied"},
		},
		"an index that does not exist": {
			[]v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "replace", Path: "/spec/template/spec/tags/7", Value: raw(`1`)})},
			[]string{"(replace /spec/template/spec/tags/7) cannot be applied"},
		},
		"a variable that does not exist": {
			added(`{{ .size }}`),
			[]string{`spec.patches[0].jsonPatches[0]: valueFrom.template: "{{ .size }}": there is no variable "size"`, "the variables are instanceType, zone, ", ", templateName"},
		},
		"a variable that does not exist, in a condition": {
			[]v1alpha1.Patch{infrastructure(`{{ eq .CapacityType "spot" }}`, v1alpha1.JSONPatch{Op: "remove", Path: "/spec/x"})},
			[]string{`spec.patches[0].enabledIf`, `there is no variable "CapacityType"; the variables are instanceType, zone, capacityType, `},
		},
		"a variable that does not exist, for other offerings": {
			added(`{{ if eq .zone "elsewhere" }}{{ upper (print .size) }}{{ end }}x`),
			[]string{`there is no variable "size"`},
		},
		"a variable that does not exist, in a range": {
			added(`{{ range .labels }}{{ $.size }}{{ else }}x{{ end }}x`),
			[]string{`there is no variable "size"`},
		},
		"a variable that does not exist, after a range": {
			added(`{{ range list }}{{ . }}{{ else }}{{ with .zone }}x{{ else }}{{ .size }}{{ end }}{{ end }}x`),
			[]string{`there is no variable "size"`},
		},
		"a variable in a with, where the dot is another value": {
			added(`{{ with .labels }}{{ .zone }}{{ end }}`),
			[]string{`spec.patches[0].jsonPatches[0] (add /spec/x): valueFrom.template`, `no entry for key "zone"`},
		},
		"a field of text": {
			added(`{{ .zone.name }}`),
			[]string{`the variable zone is a string, so it has no field "name"`},
		},
		"a label with dots": {
			added(`{{ .labels.example.com }}`),
			[]string{`so example has no field "com"; a key with dots needs get .labels "example.com"`},
		},
		"a key that a map lacks": {
			added(`{{ .kubeReserved.cpu }}`),
			[]string{`spec.patches[0].jsonPatches[0] (add /spec/x): valueFrom.template`, `no entry for key "cpu"`},
		},
		"an item that a list lacks": {
			added(`{{ index (list 1 2) 2 }}`),
			[]string{"there is no item 2 of 2"},
		},
		"an item before a list": {
			added(`{{ index (list 1 2) -1 }}`),
			[]string{"there is no item -1 of 2"},
		},
		"an item of a number": {
			added(`{{ index .maxPods 0 }}`),
			[]string{"it needs a map and text, or a list and a number, found int and int"},
		},
		"an item of a map by number": {
			added(`{{ index .labels 0 }}`),
			[]string{"it needs a map and text, or a list and a number, found map"},
		},
		"an index from the end": {
			[]v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "remove", Path: "/spec/template/spec/tags/-1"})},
			[]string{"(remove /spec/template/spec/tags/-1) cannot be applied"},
		},
		"a condition of the second patch that fails": {
			[]v1alpha1.Patch{
				infrastructure("", v1alpha1.JSONPatch{Op: "add", Path: "/spec/x", Value: raw("1")}),
				infrastructure(`{{ fail "no" }}`, v1alpha1.JSONPatch{Op: "remove", Path: "/spec/x"}),
			},
			[]string{"spec.patches[1].enabledIf"},
		},
		"an expression that fails": {
			[]v1alpha1.Patch{infrastructure(`{{ fail "no" }}`, v1alpha1.JSONPatch{Op: "remove", Path: "/spec/template"})},
			[]string{"spec.patches[0].enabledIf", "no"},
		},
		"not a Go template": {
			[]v1alpha1.Patch{infrastructure(`{{ if }}`, v1alpha1.JSONPatch{Op: "remove", Path: "/spec/template"})},
			[]string{`spec.patches[0].enabledIf: "{{ if }}" is not a Go template`},
		},
		"no YAML": {
			[]v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "add", Path: "/spec/x", ValueFrom: from("{a: [")})},
			[]string{"is not valid YAML"},
		},
		"nothing": {
			[]v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "add", Path: "/spec/x", ValueFrom: from("{{ .reservationID }}")})},
			[]string{"renders to nothing"},
		},
		"beyond spec": {
			[]v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "add", Path: "/metadata/name", Value: raw(`"x"`)})},
			[]string{`path must be below /spec/, found "/metadata/name"`},
		},
		"two dots do not leave the spec": {
			[]v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "add", Path: "/spec/../metadata", Value: raw(`"x"`)})},
			[]string{"cannot be applied"},
		},
		"no value": {
			[]v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "add", Path: "/spec/x"})},
			[]string{"spec.patches[0].jsonPatches[0]: op add needs 1 of value and valueFrom, found 0"},
		},
		"a value to remove": {
			[]v1alpha1.Patch{infrastructure("", v1alpha1.JSONPatch{Op: "remove", Path: "/spec/x", Value: raw("1")})},
			[]string{"op remove needs 0 of value and valueFrom, found 1"},
		},
		"every bad one is named": {
			[]v1alpha1.Patch{infrastructure("{{", v1alpha1.JSONPatch{Op: "remove", Path: "/spec/x"}), infrastructure("", v1alpha1.JSONPatch{Op: "move", Path: "/spec/x"})},
			[]string{"spec.patches[0].enabledIf", `spec.patches[1].jsonPatches[0]: op must be add, replace or remove, found "move"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := apply(tc.patches)
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to contain %q", err, want)
				}
			}
		})
	}
}
