// SPDX-License-Identifier: Apache-2.0

// Package kinds is what programs and tests on the stack know of the kinds of scalable resources: how their manifests
// differ, and how they are listed together.
package kinds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// Kind is the kind of scalable resource with which machines are made. It is a flag.Value.
type Kind string

// The kinds.
const (
	MachineDeployment = Kind(v1alpha1.ScalableResourceKindMachineDeployment)
	MachinePool       = Kind(v1alpha1.ScalableResourceKindMachinePool)
)

// All are all kinds, first that of which manifests are written.
var All = []Kind{MachineDeployment, MachinePool}

// Usage is that of a flag.
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

// Plural is how many of the kind are called in a line of counts.
func (k Kind) Plural() string { return strings.ToLower(string(k)) + "s" }

// Manifests returns manifests that are written for MachineDeployments as they are for the kind: with infrastructure
// templates of another kind, whose specs are alike. Their templates must name the kind, also where it is the default.
func (k Kind) Manifests(manifests []byte) []byte {
	if k == MachineDeployment {
		return manifests
	}
	return []byte(strings.NewReplacer(
		"kind: MachineDeployment", "kind: "+string(k),
		"kind: SimulatedMachineTemplate", "kind: SimulatedMachinePoolTemplate",
	).Replace(string(manifests)))
}
