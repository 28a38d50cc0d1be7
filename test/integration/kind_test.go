// SPDX-License-Identifier: Apache-2.0

package integration

import (
	. "github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/rotation"
)

// kind is a kind of scalable resources.
type kind v1alpha1.ScalableResourceKind

const (
	machineDeployments = kind(v1alpha1.ScalableResourceKindMachineDeployment)
	machinePools       = kind(v1alpha1.ScalableResourceKindMachinePool)
)

// forEachKind describes behavior with each kind of scalable resources. Specs for only one of them
// use a plain Describe and a reason. `make test` runs the specs with one of the kinds, which depends
// on the commit, and half of all containers with each kind.
func forEachKind(text string, body func(kind)) bool {
	container := forEachKindContainers
	forEachKindContainers++
	return Describe(text, func() {
		for i, k := range scalable.Kinds() {
			if rotation.Turn(len(scalable.Kinds()), container+i) {
				Context("of a "+string(k.Name()), func() { body(kind(k.Name())) })
			}
		}
	})
}

// forEachKindContainers counts the containers of specs for each kind.
var forEachKindContainers int

// suffix makes the names of objects for each kind different.
func (k kind) suffix() string {
	if k == machinePools {
		return "-pool"
	}
	return ""
}

// newInfrastructure returns an infrastructure template of machines for a kind.
func (k kind) newInfrastructure(name string) client.Object {
	meta := metav1.ObjectMeta{Namespace: served.Namespace, Name: name}
	if k == machinePools {
		return &infrav1.SimulatedMachinePoolTemplate{ObjectMeta: meta}
	}
	return &infrav1.SimulatedMachineTemplate{ObjectMeta: meta}
}

// infrastructureRef refers to an infrastructure template for a kind.
func (k kind) infrastructureRef(name string) *clusterv1.ContractVersionedObjectReference {
	ref := &clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "SimulatedMachineTemplate", Name: name}
	if k == machinePools {
		ref.Kind = "SimulatedMachinePoolTemplate"
	}
	return ref
}

// madeOf returns the kind of the object that the operator generates from an infrastructure
// template.
func (k kind) madeOf() string {
	if k == machinePools {
		return "SimulatedMachinePool"
	}
	return "SimulatedMachineTemplate"
}

// field returns the path of a field of the machines in the generated object.
func (k kind) field(name string) string {
	if k == machinePools {
		return "spec." + name
	}
	return "spec.template.spec." + name
}

// nameLabel is the label of Machines with the name of their scalable resource.
func (k kind) nameLabel() string {
	if k == machinePools {
		return clusterv1.MachinePoolNameLabel
	}
	return clusterv1.MachineDeploymentNameLabel
}

// machineSpec returns the spec of the machines of an infrastructure template, a part of it.
func machineSpec(infrastructure client.Object) *infrav1.SimulatedMachineSpec {
	if pool, is := infrastructure.(*infrav1.SimulatedMachinePoolTemplate); is {
		return &pool.Spec.Template.Spec.SimulatedMachineSpec
	}
	return &infrastructure.(*infrav1.SimulatedMachineTemplate).Spec.Template.Spec
}

// uncached returns a cluster that package scalable reads from without a cache.
func (e *environment) uncached() *clients.Clusters {
	return &clients.Clusters{Cluster: served, Management: uncached{client: e.client}}
}

type uncached struct {
	cluster.Cluster
	client client.Client
}

// GetClient implements cluster.Cluster.
func (u uncached) GetClient() client.Client { return u.client }
