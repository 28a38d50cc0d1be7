// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
)

// merge returns the instance types of a template, by name. Sources with the same name are one type
// with the offerings of all.
//
// Catalogs take precedence over discovered objects: one that contradicts a catalog, or that has an
// offering of it, is left out. If catalogs describe a type differently, or discovered objects do, none
// of them is offered. An offering that two of them have is left out; their other offerings are not. The
// result does not depend on the order in which the sources were found.
func merge(template *v1alpha1.KarpenterMachineTemplate, sources []Source) ([]Type, []Problem) {
	sources = slices.Clone(sources)
	slices.SortFunc(sources, func(a, b Source) int { return cmp.Compare(a.Name, b.Name) })
	byName := lo.GroupBy(sources, func(s Source) string { return s.Type.Name })
	types := make([]Type, 0, len(byName))
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		joined, conflicts := join(byName[name])
		problems = append(problems, conflicts...)
		if len(joined.Offerings) > 0 {
			types = append(types, joined)
		}
	}
	setFailureDomains(types, template.Spec.FailureDomains)
	return types, problems
}

// setFailureDomains sets the failure domains of offerings. Machines of discovered MachineDeployments
// are where these say.
func setFailureDomains(types []Type, given []v1alpha1.ZoneFailureDomain) {
	names := lo.SliceToMap(given, func(d v1alpha1.ZoneFailureDomain) (string, string) { return string(d.Zone), string(d.FailureDomain) })
	for i := range types {
		for j := range types[i].Offerings {
			if o := &types[i].Offerings[j]; o.MachineDeployment == "" {
				o.FailureDomain = lo.CoalesceOrEmpty(names[o.Zone], o.Zone)
			}
		}
	}
}

// inFailureDomains leaves out offerings in failure domains that the Cluster does not have (Cluster API:
// api/core/v1beta2/machine_types.go, MachineSpec.failureDomain), unless the Cluster reports none.
func inFailureDomains(types []Type, domains []string) ([]Type, []Problem) {
	if len(domains) == 0 {
		return types, nil
	}
	unknown := sets.New[string]()
	isUnknown := func(o Offering, _ int) bool {
		missing := o.FailureDomain != "" && !slices.Contains(domains, o.FailureDomain)
		if missing {
			unknown.Insert(o.Zone)
		}
		return missing
	}
	known := lo.FilterMap(types, func(t Type, _ int) (Type, bool) {
		t.Offerings = lo.Reject(t.Offerings, isUnknown)
		return t, len(t.Offerings) > 0
	})
	if unknown.Len() == 0 {
		return types, nil
	}
	return known, []Problem{{v1alpha1.ReasonZonesUnknown, fmt.Sprintf(
		"the Cluster has no failure domain for the zones %s: correct the zones of the offerings, or set spec.failureDomains. The Cluster has the failure domains %s",
		budget.Names(sets.List(unknown), maxZonesNamed), budget.Names(domains, maxZonesNamed))}}
}

// maxZonesNamed is the number of zones and failure domains that a message names.
const maxZonesNamed = 8

// join returns the type that sources with the same name describe. It has no offerings if none of them can be
// offered.
func join(sources []Source) (Type, []Problem) {
	listed, found := lo.FilterReject(sources, func(s Source, _ int) bool { return s.Listed })
	if len(listed) == 0 {
		return agreed(found)
	}
	joined, problems := agreed(listed)
	if len(joined.Offerings) == 0 {
		return joined, problems
	}
	name := listed[0].Name
	found = lo.Filter(found, func(source Source, _ int) bool {
		differences := differences(source.Type, joined, false)
		for i := range source.Offerings {
			if o := &source.Offerings[i]; joined.Find(o.Zone, o.CapacityType) != nil {
				differences = append(differences, fmt.Sprintf("both have offering %s", source.KeyOf(o)))
			}
		}
		if len(differences) > 0 {
			problems = append(problems, conflict(joined.Name, source.Name, name, differences, name+" takes precedence"))
		}
		return len(differences) == 0
	})
	more, overlaps := distinct(found)
	joined.Offerings = slices.Concat(joined.Offerings, more)
	return joined, append(problems, overlaps...)
}

// agreed returns the type that all sources describe in the same way.
func agreed(sources []Source) (Type, []Problem) {
	var problems []Problem
	for _, source := range sources[1:] {
		if differences := differences(source.Type, sources[0].Type, true); len(differences) > 0 {
			problems = append(problems, conflict(source.Type.Name, source.Name, sources[0].Name, differences, "none is offered"))
		}
	}
	if len(problems) > 0 {
		return Type{}, problems
	}
	joined := sources[0].Type
	joined.Offerings, problems = distinct(sources)
	return joined, problems
}

// distinct returns the offerings that only one of the sources has.
func distinct(sources []Source) ([]Offering, []Problem) {
	if len(sources) == 1 {
		return sources[0].Offerings, nil
	}
	first, shared := map[Key]int{}, sets.New[Key]()
	var problems []Problem
	for i := range sources {
		for j := range sources[i].Offerings {
			key := sources[i].KeyOf(&sources[i].Offerings[j])
			other, taken := first[key]
			if !taken {
				first[key] = i
				continue
			}
			shared.Insert(key)
			problems = append(problems, conflict(key.InstanceType, sources[i].Name, sources[other].Name,
				[]string{fmt.Sprintf("both have offering %s", key)}, "this offering is left out"))
		}
	}
	var offerings []Offering
	for i := range sources {
		offerings = append(offerings, lo.Reject(sources[i].Offerings, func(o Offering, _ int) bool { return shared.Has(sources[i].KeyOf(&o)) })...)
	}
	return offerings, problems
}

func conflict(name, one, other string, differences []string, outcome string) Problem {
	return Problem{v1alpha1.ReasonSourcesConflict, fmt.Sprintf("instance type %s: %s contradicts %s: %s; %s", name, one, other, strings.Join(differences, ", "), outcome)}
}

// differences returns where one type contradicts another. A value that one of them does
// not set is no contradiction, unless both must be alike.
func differences(one, other Type, alike bool) []string {
	var found []string
	has, otherHas := one.Capacity, withDefaultPods(other.Capacity)
	names := sets.KeySet(has)
	if alike {
		has = withDefaultPods(has)
		names = sets.KeySet(has).Union(sets.KeySet(otherHas))
	}
	for _, name := range sets.List(names) {
		mine, isMine := has[name]
		theirs, isTheirs := otherHas[name]
		if mine.Cmp(theirs) != 0 { // 0 is the same as none
			found = append(found, fmt.Sprintf("capacity.%s: %s instead of %s", name, orNone(mine.String(), isMine), orNone(theirs.String(), isTheirs)))
		}
	}
	mine, theirs := one.Labels, withDefaults(other.Labels)
	if alike {
		mine = withDefaults(mine)
	}
	found = append(found, entries("label ", mine, theirs, alike)...)
	found = append(found, entries("volumeAttachmentLimits.", one.VolumeAttachmentLimits, other.VolumeAttachmentLimits, alike)...)
	return append(found, deviceDifferences(one.Devices, other.Devices, alike)...)
}

// entries returns where the entries of one map contradict those of another. One that only the other map has counts if both must be
// alike.
func entries[V comparable](prefix string, one, other map[string]V, alike bool) []string {
	keys := sets.KeySet(one)
	if alike {
		keys = keys.Union(sets.KeySet(other))
	}
	return lo.FilterMap(sets.List(keys), func(key string, _ int) (string, bool) {
		mine, isMine := one[key]
		theirs, isTheirs := other[key]
		return fmt.Sprintf("%s%s: %s instead of %s", prefix, key, orNone(fmt.Sprint(mine), isMine), orNone(fmt.Sprint(theirs), isTheirs)),
			isMine != isTheirs || mine != theirs
	})
}

func orNone(value string, given bool) string { return lo.Ternary(given, value, "none") }

// withDefaultPods returns capacity with the default number of Pods, if none is set.
func withDefaultPods(capacity corev1.ResourceList) corev1.ResourceList {
	return merged(corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(defaultMaxPods, resource.DecimalSI)}, capacity)
}

// withDefaults returns labels with the default architecture and operating system, if none
// are set.
func withDefaults(labels map[string]string) map[string]string {
	return merged(map[string]string{corev1.LabelArchStable: karpv1.ArchitectureAmd64, corev1.LabelOSStable: string(corev1.Linux)}, labels)
}
