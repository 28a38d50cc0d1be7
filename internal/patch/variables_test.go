// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Each variable has the value of its field, which is plain: what JSON decodes to, so that all functions accept it.
func TestVariables(t *testing.T) {
	values := Variables{
		InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "reserved", FailureDomain: "1", ReservationID: "cr-1",
		Region: "us-east-1", Architecture: "arm64", OperatingSystem: "windows", Labels: map[string]string{"x.y/size": "2"},
		MaxPods: 58, KubeReserved: map[string]string{"cpu": "70m"}, ClusterName: "prod", KubernetesVersion: "v1.36.3", TemplateName: "general",
	}
	want := map[string]any{
		"instanceType": "m5.large", "zone": "us-east-1a", "capacityType": "reserved", "failureDomain": "1", "reservationID": "cr-1",
		"region": "us-east-1", "architecture": "arm64", "operatingSystem": "windows", "labels": map[string]any{"x.y/size": "2"},
		"maxPods": int64(58), "kubeReserved": map[string]any{"cpu": "70m"}, "clusterName": "prod", "kubernetesVersion": "v1.36.3", "templateName": "general",
	}
	types := map[string]string{aString: "string", aNumber: "int", aStringMap: "map[string]interface {}"}
	got := map[string]any{}
	for _, variable := range allVariables {
		got[variable.name] = rendered(t, "{{ ."+variable.name+" | toJson }}", values)
		if found := rendered(t, `{{ printf "%T" .`+variable.name+" | quote }}", values); found != types[variable.kind] {
			t.Errorf("%s is a %s, found %s", variable.name, variable.kind, found)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The guide documents each variable as the table of the code does, and the API names them in the same order.
func TestVariablesAreDocumented(t *testing.T) {
	want, names := []string{"| --- | --- | --- | --- |"}, []string{}
	for _, variable := range allVariables {
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | `%s` |", variable.name, variable.kind, variable.meaning, variable.example))
		names = append(names, variable.name)
		var example any = variable.example
		if variable.kind != aString {
			if err := json.Unmarshal([]byte(variable.example), &example); err != nil {
				t.Errorf("the example of %s: %v", variable.name, err)
			}
		}
		types := map[string]any{aString: "", aNumber: 1.0, aStringMap: map[string]any{}}
		if fmt.Sprintf("%T", example) != fmt.Sprintf("%T", types[variable.kind]) {
			t.Errorf("the example of %s, %s, is not a %s", variable.name, variable.example, variable.kind)
		}
	}
	if diff := cmp.Diff(want, tableInGuide(t, "| variable | type | value | example |")); diff != "" {
		t.Errorf("the guide (-want +got):\n%s", diff)
	}
	source, err := os.ReadFile("../../api/v1alpha1/patch_types.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(strings.ReplaceAll(string(source), "\n// ", " "), "and these variables: ")
	list, _, _ := strings.Cut(rest, ".")
	if diff := cmp.Diff(names, strings.Split(strings.Replace(list, " and ", ", ", 1), ", ")); diff != "" {
		t.Errorf("the API (-want +got):\n%s", diff)
	}
}

// tableInGuide returns the lines below a header in the guide.
func tableInGuide(t *testing.T, header string) []string {
	t.Helper()
	guide, err := os.ReadFile("../../docs/guides/patches.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), header+"\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	return strings.Split(table, "\n")
}

// Operations have one key exactly if they do the same. A cache of copies depends on it.
func TestKey(t *testing.T) {
	key := func(variables Variables, patches ...v1alpha1.Patch) string {
		t.Helper()
		compiled, err := Compile(patches)
		if err != nil {
			t.Fatal(err)
		}
		operations, err := compiled.Render(v1alpha1.PatchTargetInfrastructure, variables)
		if err != nil {
			t.Fatal(err)
		}
		return operations.Key()
	}
	in := func(zone string) Variables { return Variables{Zone: zone, CapacityType: "spot"} }
	byZone := infrastructure("", v1alpha1.JSONPatch{Op: "add", Path: "/spec/zone", ValueFrom: from("{{ .zone }}")})
	onDemand := infrastructure(`{{ eq .capacityType "on-demand" }}`, v1alpha1.JSONPatch{Op: "remove", Path: "/spec/x"})
	fixed := infrastructure("", v1alpha1.JSONPatch{Op: "add", Path: "/spec/zone", Value: raw(`"a"`)})
	removed := infrastructure("", v1alpha1.JSONPatch{Op: "remove", Path: "/spec/zone"})
	if key(in("a"), byZone, onDemand) != key(in("a"), fixed) {
		t.Error("equal operations have different keys")
	}
	keys := map[string]string{"none": key(in("a"), onDemand), "a": key(in("a"), byZone), "b": key(in("b"), byZone), "removed": key(in("a"), removed),
		"a, and removed": key(in("a"), byZone, removed), "removed, and a": key(in("a"), removed, byZone)}
	seen := map[string]string{}
	for name, key := range keys {
		if other, twice := seen[key]; twice {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[key] = name
	}
}
