// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
)

// Variables are the values of the variables for Go templates in patches. A value that an offering lacks is the empty
// string. allVariables has the meaning of each.
type Variables struct {
	// InstanceType, Zone and CapacityType identify the offering.
	InstanceType, Zone, CapacityType string
	// FailureDomain and ReservationID are further values of the offering.
	FailureDomain, ReservationID string
	// Region, Architecture and OperatingSystem are labels of the instance type.
	Region, Architecture, OperatingSystem string
	// Labels are the labels of the instance type.
	Labels map[string]string
	// MaxPods and KubeReserved are settings of the kubelet.
	MaxPods      int32
	KubeReserved map[string]string
	// ClusterName, KubernetesVersion and TemplateName are the same for all offerings.
	ClusterName, KubernetesVersion, TemplateName string
}

// The types of variables. Their values are plain, as if they were decoded from JSON: string, int and map[string]any.
const (
	aString    = "string"
	aNumber    = "whole number"
	aStringMap = "map of strings"
)

// variable is a variable for Go templates in patches: a row of the table in docs/guides/patches.md, and its value.
type variable struct {
	name, kind, meaning, example string

	value func(*Variables) any
}

// allVariables are the variables, in the order of the documentation.
var allVariables = []variable{
	{"instanceType", aString, "the name of the instance type", "m6i.large",
		func(v *Variables) any { return v.InstanceType }},
	{"zone", aString, "the zone of the offering", "us-east-1a",
		func(v *Variables) any { return v.Zone }},
	{"capacityType", aString, "the capacity type of the offering: `on-demand`, `spot` or `reserved`", "spot",
		func(v *Variables) any { return v.CapacityType }},
	{"failureDomain", aString, "the Cluster's failure domain: that of `spec.failureDomains`, or else the zone", "us-east-1a",
		func(v *Variables) any { return v.FailureDomain }},
	{"reservationID", aString, "the id of the offering's reservation", "cr-0a1b2c3d4e5f60718",
		func(v *Variables) any { return v.ReservationID }},
	{"region", aString, "the label `topology.kubernetes.io/region` of the instance type", "us-east-1",
		func(v *Variables) any { return v.Region }},
	{"architecture", aString, "the label `kubernetes.io/arch` of the instance type", "amd64",
		func(v *Variables) any { return v.Architecture }},
	{"operatingSystem", aString, "the label `kubernetes.io/os` of the instance type", "linux",
		func(v *Variables) any { return v.OperatingSystem }},
	{"labels", aStringMap, "all labels that the instance type gives to Nodes; " +
		"instance type, zone and capacity type are only in their own variables", `{"karpenter.cluster.x-k8s.io/instance-cpu": "2"}`,
		func(v *Variables) any { return plain(v.Labels) }},
	{"maxPods", aNumber, "how many Pods the kubelet must accept", "110",
		func(v *Variables) any { return int(v.MaxPods) }},
	{"kubeReserved", aStringMap, "what the kubelet must reserve for the daemons of Kubernetes, as quantities; " +
		"it has no keys if `spec.kubelet` sets neither a formula nor values", `{"cpu": "70m", "memory": "574Mi"}`,
		func(v *Variables) any { return plain(v.KubeReserved) }},
	{"clusterName", aString, "the name of the served Cluster", "prod",
		func(v *Variables) any { return v.ClusterName }},
	{"kubernetesVersion", aString, "`template.spec.version`, or the version of the control plane if that is not set", "v1.36.3",
		func(v *Variables) any { return v.KubernetesVersion }},
	{"templateName", aString, "the name of this KarpenterMachineTemplate", "general",
		func(v *Variables) any { return v.TemplateName }},
}

// plain returns a map in the form that all functions for maps accept.
func plain(from map[string]string) map[string]any {
	return lo.MapValues(from, func(value, _ string) any { return value })
}

// values returns the variables by the names that templates use.
func (v *Variables) values() map[string]any {
	return lo.SliceToMap(allVariables, func(each variable) (string, any) { return each.name, each.value(v) })
}

// checkVariable returns an error if a variable does not exist, or if it has no such field.
func checkVariable(path []string) error {
	name := path[0]
	at := slices.IndexFunc(allVariables, func(each variable) bool { return each.name == name })
	switch {
	case at < 0:
		names := lo.Map(allVariables, func(each variable, _ int) string { return each.name })
		return fmt.Errorf("there is no variable %q; the variables are %s", name, strings.Join(names, ", "))
	case len(path) > 1 && allVariables[at].kind != aStringMap:
		return fmt.Errorf("the variable %s is a %s, so it has no field %q", name, allVariables[at].kind, path[1])
	case len(path) > 2:
		return fmt.Errorf("the values of %s are strings, so %s has no field %q; a key with dots needs get .%s %q",
			name, path[1], path[2], name, strings.Join(path[1:], "."))
	}
	return nil
}
