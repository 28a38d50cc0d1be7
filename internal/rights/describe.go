// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/samber/lo"
)

// Lack is what a user may not do in a namespace, or in the whole cluster.
type Lack struct {
	// Message names the user and the rights.
	Message string
	// Do is what grants them.
	Do string
}

// Describe returns missing rights of a user, and what grants them, for each namespace.
func Describe(missing []Right, user string) []Lack {
	byNamespace := lo.GroupBy(missing, func(r Right) string { return r.Namespace })
	return lo.Map(slices.Sorted(maps.Keys(byNamespace)), func(namespace string, _ int) Lack {
		return describe(namespace, byNamespace[namespace], user)
	})
}

func describe(namespace string, missing []Right, user string) Lack {
	resources := lo.GroupBy(missing, func(r Right) string { return r.Resource + dotted(r.Group) })
	var lacks, grants []string
	for _, resource := range slices.Sorted(maps.Keys(resources)) {
		verbs := strings.Join(lo.Map(resources[resource], func(r Right, _ int) string { return r.Verb }), ",")
		group := resources[resource][0].Group
		lacks = append(lacks, fmt.Sprintf("%s %s (API group %q)", verbs, resources[resource][0].Resource, group))
		grants = append(grants, fmt.Sprintf("{apiGroups: [%q], resources: [%s], verbs: [%s]}", group, resources[resource][0].Resource, strings.ReplaceAll(verbs, ",", ", ")))
	}
	where, role := "in the whole cluster", "ClusterRole"
	if namespace != "" {
		where, role = "in namespace "+namespace, "Role"
	}
	return Lack{
		Message: fmt.Sprintf("%s has no right %s to %s", user, where, strings.Join(lacks, ", ")),
		Do:      fmt.Sprintf("install the roles of the chart karpenter-capi, or bind it to a %s with the rules [%s]", role, strings.Join(grants, ", ")),
	}
}

// dotted returns the suffix of a resource of a group.
func dotted(group string) string { return lo.Ternary(group == "", "", "."+group) }
