// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"slices"
	"strings"
)

// Placement is where Cluster API and the operator run.
type Placement string

// The placements.
const (
	// Joined has everything in one cluster.
	Joined Placement = "joined"
	// InWorkload has Cluster API in the management cluster, and the operator in the workload cluster.
	InWorkload Placement = "workload"
	// InManagement has Cluster API and the operator in the management cluster.
	InManagement Placement = "management"
)

// Placements are all placements.
var Placements = []Placement{Joined, InWorkload, InManagement}

// PlacementUsage describes a flag with a placement.
var PlacementUsage = "where the operator is: " + strings.Join([]string{
	string(Joined) + " (everything in one cluster)", string(InWorkload), string(InManagement),
}, ", ")

// Separate reports whether there are two clusters.
func (p Placement) Separate() bool { return p == InWorkload || p == InManagement }

// String returns the value of a flag.
func (p *Placement) String() string {
	if *p == "" {
		return string(Joined)
	}
	return string(*p)
}

// Set implements flag.Value.
func (p *Placement) Set(value string) error {
	if !slices.Contains(Placements, Placement(value)) {
		return fmt.Errorf("%q is none of %v", value, Placements)
	}
	*p = Placement(value)
	return nil
}

// kubeconfigArgs returns the environment and the arguments with which the operator finds both clusters.
func (p Placement) kubeconfigArgs(workload, management string) (env, args []string) {
	if p == InManagement {
		return []string{"KUBECONFIG=" + management}, []string{"--workload-kubeconfig=" + workload}
	}
	return []string{"KUBECONFIG=" + workload}, []string{"--cluster-api-kubeconfig=" + management}
}
