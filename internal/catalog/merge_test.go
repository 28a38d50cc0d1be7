// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/property"
)

// discovered returns a source with one offering of 2 CPUs and 8Gi.
func discovered(source, name, zone string) Source {
	return Source{Name: source, Type: Type{
		Name: name, Capacity: corev1.ResourceList(list("cpu", "2", "memory", "8Gi")), Labels: map[string]string{},
		Offerings: []Offering{{Zone: zone, CapacityType: "on-demand", MachineDeployment: source}},
	}}
}

func TestMerge(t *testing.T) {
	with := func(s Source, change func(*Source)) Source {
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		listed     []v1alpha1.InstanceType
		discovered []Source
		want       map[string][]string // offerings by type
		problems   []string
	}{
		"a catalog alone":  {listed: []v1alpha1.InstanceType{m5large()}, want: map[string][]string{"m5.large": {"a/on-demand", "b/on-demand", "a/spot"}}},
		"discovered alone": {discovered: []Source{discovered("x", "n1", "a"), discovered("y", "n1", "b")}, want: map[string][]string{"n1": {"a/on-demand", "b/on-demand"}}},
		"offerings join":   {listed: []v1alpha1.InstanceType{m5large()}, discovered: []Source{discovered("x", "m5.large", "z")}, want: map[string][]string{"m5.large": {"a/on-demand", "b/on-demand", "a/spot", "z/on-demand"}}},
		"nothing at all":   {want: map[string][]string{}},
		"the default labels": {
			discovered: []Source{discovered("x", "n1", "a"), with(discovered("y", "n1", "b"), func(s *Source) { s.Labels["kubernetes.io/arch"] = "amd64" })},
			want:       map[string][]string{"n1": {"a/on-demand", "b/on-demand"}},
		},
		"a catalog takes precedence over another capacity": {
			listed:     []v1alpha1.InstanceType{m5large()},
			discovered: []Source{with(discovered("x", "m5.large", "z"), func(s *Source) { s.Capacity = corev1.ResourceList(list("cpu", "2", "memory", "4Gi")) })},
			want:       map[string][]string{"m5.large": {"a/on-demand", "b/on-demand", "a/spot"}},
			problems:   []string{"instance type m5.large: x contradicts InstanceTypeCatalog types: capacity.memory: 4Gi instead of 8Gi; InstanceTypeCatalog types takes precedence"},
		},
		"a catalog takes precedence over other labels": {
			listed:     []v1alpha1.InstanceType{m5large()},
			discovered: []Source{with(discovered("x", "m5.large", "z"), func(s *Source) { s.Labels["kubernetes.io/arch"] = "arm64" })},
			want:       map[string][]string{"m5.large": {"a/on-demand", "b/on-demand", "a/spot"}},
			problems:   []string{"label kubernetes.io/arch: arm64 instead of amd64"},
		},
		"a catalog keeps its offerings": {
			listed:     []v1alpha1.InstanceType{m5large()},
			discovered: []Source{discovered("x", "m5.large", "a")},
			want:       map[string][]string{"m5.large": {"a/on-demand", "b/on-demand", "a/spot"}},
			problems:   []string{"both have offering m5.large/a/on-demand; InstanceTypeCatalog types takes precedence"},
		},
		"a catalog with another architecture than the default": {
			listed: []v1alpha1.InstanceType{func() v1alpha1.InstanceType {
				it := m5large()
				it.Labels = map[string]v1alpha1.LabelValue{"kubernetes.io/arch": "arm64"}
				return it
			}()},
			discovered: []Source{discovered("x", "m5.large", "z")},
			want:       map[string][]string{"m5.large": {"a/on-demand", "b/on-demand", "a/spot", "z/on-demand"}},
		},
		"an offering of others that the catalog does not have": {
			listed:     []v1alpha1.InstanceType{m5large()},
			discovered: []Source{discovered("y", "m5.large", "z"), discovered("x", "m5.large", "z"), discovered("w", "m5.large", "y")},
			want:       map[string][]string{"m5.large": {"a/on-demand", "b/on-demand", "a/spot", "y/on-demand"}},
			problems:   []string{"instance type m5.large: y contradicts x: both have offering m5.large/z/on-demand; this offering is left out"},
		},
		"what one has and the other does not": {
			discovered: []Source{discovered("y", "n1", "b"), with(discovered("z", "n1", "c"), func(s *Source) {
				s.Capacity, s.Labels = corev1.ResourceList(list("cpu", "2", "memory", "8Gi", "nvidia.com/gpu", "1")), map[string]string{"role": ""}
			}), with(discovered("a", "n2", "b"), func(s *Source) { s.Labels["role"] = "" }), discovered("b", "n2", "c")},
			want: map[string][]string{},
			problems: []string{
				"instance type n1: z contradicts y: capacity.nvidia.com/gpu: 1 instead of none, label role:  instead of none; none is offered",
				"instance type n2: b contradicts a: label role: none instead of ; none is offered",
			},
		},
		"no GPU, or none given": {
			discovered: []Source{discovered("x", "n1", "a"), with(discovered("y", "n1", "b"), func(s *Source) {
				s.Capacity = corev1.ResourceList(list("cpu", "2", "memory", "8Gi", "nvidia.com/gpu", "0"))
			})},
			want: map[string][]string{"n1": {"a/on-demand", "b/on-demand"}},
		},
		"discovered objects contradict each other": {
			discovered: []Source{discovered("y", "n1", "b"), with(discovered("x", "n1", "a"), func(s *Source) {
				s.Capacity = corev1.ResourceList(list("cpu", "2", "memory", "8Gi", "nvidia.com/gpu", "1"))
			}), discovered("z", "n2", "a")},
			want:     map[string][]string{"n2": {"a/on-demand"}},
			problems: []string{"instance type n1: y contradicts x: capacity.nvidia.com/gpu: none instead of 1; none is offered"},
		},
		"one offering twice": {
			discovered: []Source{discovered("x", "n1", "a"), discovered("y", "n1", "a"), discovered("z", "n1", "b")},
			want:       map[string][]string{"n1": {"b/on-demand"}},
			problems:   []string{"y contradicts x: both have offering n1/a/on-demand; this offering is left out"},
		},
		"an invalid type of a catalog beside a discovered one": {
			listed:     []v1alpha1.InstanceType{func() v1alpha1.InstanceType { it := m5large(); it.Offerings[0].Price = "x"; return it }()},
			discovered: []Source{discovered("x", "m5.large", "z")},
			want:       map[string][]string{"m5.large": {"z/on-demand"}},
			problems:   []string{`InstanceTypeCatalog types (m5.large): offering a/on-demand: price "x" is not a decimal number`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			types, problems := TypesOf(template(), tc.discovered, listed(tc.listed...))
			got := map[string][]string{}
			for _, merged := range types {
				for _, o := range merged.Offerings {
					got[merged.Name] = append(got[merged.Name], o.Zone+"/"+o.CapacityType)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("offerings (-want +got):\n%s", diff)
			}
			if len(problems) != len(tc.problems) {
				t.Fatalf("got problems %+v, want %d", problems, len(tc.problems))
			}
			for i, want := range tc.problems {
				if !strings.Contains(problems[i].Message, want) {
					t.Errorf("got problem %q, want %q", problems[i].Message, want)
				}
			}
		})
	}
}

func TestMergeDoesNotDependOnTheOrder(t *testing.T) {
	type kind struct {
		instanceType, zone, disk string
		capacity                 bool
	}
	kinds := rapid.Custom(func(t *rapid.T) kind {
		return kind{
			instanceType: rapid.SampledFrom([]string{"m5.large", "n1", "n2"}).Draw(t, "instance type"),
			zone:         rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "zone"),
			disk:         rapid.SampledFrom([]string{"", "", "", "", "", "", "ssd", "hdd"}).Draw(t, "disk"),
			capacity:     property.OneIn(4).Draw(t, "capacity"),
		}
	})
	property.Check(t, 2000, func(t *rapid.T) {
		var found []Source
		for i, kind := range rapid.SliceOfN(kinds, 0, 7).Draw(t, "found") {
			s := discovered(fmt.Sprintf("md-%d", i), kind.instanceType, kind.zone)
			if kind.capacity {
				s.Capacity = corev1.ResourceList(list("cpu", "4", "memory", "8Gi"))
			}
			if kind.disk != "" {
				s.Labels["disk"] = kind.disk
			}
			found = append(found, s)
		}
		types, problems := TypesOf(template(), found, listed(m5large()))
		order := rapid.Permutation(lo.Range(len(found))).Draw(t, "another order")
		found = lo.Map(order, func(i, _ int) Source { return found[i] })
		before := slices.Clone(found)
		again, problemsAgain := TypesOf(template(), found, listed(m5large()))
		if diff := cmp.Diff(before, found); diff != "" {
			t.Fatalf("it has changed what it was given: %s", diff)
		}
		if diff := cmp.Diff(types, again) + cmp.Diff(problems, problemsAgain); diff != "" {
			t.Fatal(diff)
		}
		seen := map[Key]bool{}
		for i := range types {
			for j := range types[i].Offerings {
				key := types[i].KeyOf(&types[i].Offerings[j])
				if seen[key] {
					t.Fatalf("%s is offered twice", key)
				}
				seen[key] = true
			}
		}
	})
}
