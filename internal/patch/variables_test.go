// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Each variable that the guide documents has the value of its field, and there are no others.
func TestVariables(t *testing.T) {
	values := Variables{
		InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "reserved", FailureDomain: "1", ReservationID: "cr-1",
		Region: "us-east-1", Architecture: "arm64", OperatingSystem: "windows", Labels: map[string]string{"x.y/size": "2"},
		MaxPods: 58, KubeReserved: map[string]string{"cpu": "70m"}, ClusterName: "prod", KubernetesVersion: "v1.36.3", TemplateName: "general",
	}
	want := map[string]any{
		"instanceType": "m5.large", "zone": "us-east-1a", "capacityType": "reserved", "failureDomain": "1", "reservationID": "cr-1",
		"region": "us-east-1", "architecture": "arm64", "operatingSystem": "windows", "labels": "map[x.y/size:2]",
		"maxPods": "58", "kubeReserved": "map[cpu:70m]", "clusterName": "prod", "kubernetesVersion": "v1.36.3", "templateName": "general",
	}
	got := map[string]any{}
	for name := range want {
		got[name] = rendered(t, "{{ ."+name+" | print | quote }}", values)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	documented := inGuide(t, "| variable | value |")
	slices.Sort(documented)
	for name, names := range map[string][]string{"documented": documented, "of values": slices.Sorted(maps.Keys(values.values()))} {
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// inGuide returns the names in the first column of the table in the guide that has a header.
func inGuide(t *testing.T, header string) []string {
	t.Helper()
	guide, err := os.ReadFile("../../docs/guides/patches.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), header+"\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	var names []string
	for line := range strings.Lines(table) {
		for _, match := range regexp.MustCompile("`([a-zA-Z0-9]+)`").FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			names = append(names, match[1])
		}
	}
	return names
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
