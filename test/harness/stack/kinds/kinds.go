// SPDX-License-Identifier: Apache-2.0

// Package kinds has the kinds of scalable resources for programs and tests on the stack: how their manifests differ,
// and how they are listed together.
package kinds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Kind is the kind of scalable resource that creates machines. It is a flag.Value.
type Kind string

// The kinds.
const (
	MachineDeployment = Kind(v1alpha1.ScalableResourceKindMachineDeployment)
	MachinePool       = Kind(v1alpha1.ScalableResourceKindMachinePool)
)

// All are all kinds, first the one for which manifests are written.
var All = []Kind{MachineDeployment, MachinePool}

// Usage is the usage of a flag.
const Usage = "kind of scalable resource: MachineDeployment or MachinePool"

// String implements flag.Value.
func (k *Kind) String() string { return string(*k) }

// Set implements flag.Value.
func (k *Kind) Set(name string) error {
	if !slices.Contains(All, Kind(name)) {
		return fmt.Errorf("there is no such %s", Usage)
	}
	*k = Kind(name)
	return nil
}

// Plural is the plural of the kind in a line of counts.
func (k Kind) Plural() string { return strings.ToLower(string(k)) + "s" }

// Manifests converts manifests for MachineDeployments to the kind. The infrastructure templates get another kind, whose
// spec is the same. The templates must name the kind of scalable resource even if it is the default.
func (k Kind) Manifests(manifests []byte) []byte {
	if k == MachineDeployment {
		return manifests
	}
	return []byte(strings.NewReplacer(
		"kind: MachineDeployment", "kind: "+string(k),
		"kind: SimulatedMachineTemplate", "kind: SimulatedMachinePoolTemplate",
	).Replace(string(manifests)))
}
