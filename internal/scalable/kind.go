// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"time"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// Kind is a kind of scalable resource. No other code decides by the name of a kind: it asks what a kind has. What is generated and what
// is read for it are in files of the packages generate and snapshot.
type Kind interface {
	// Name returns the name of the kind.
	Name() v1alpha1.ScalableResourceKind
	// Accepts returns an error if a base is unsuitable for resources of this kind, or if
	// its provider can delete machines in use and the settings do not allow that.
	Accepts(base *unstructured.Unstructured, settings v1alpha1.ScalableResource) error
	// HasMachineSets reports whether Machines belong to MachineSets, which create, check and delete them. Otherwise the
	// infrastructure provider does.
	HasMachineSets() bool
	// Shares reports whether several resources can refer to one object.
	Shares() bool
	// MadeOf returns the kind of the objects that are generated from a base.
	MadeOf(base schema.GroupVersionKind) schema.GroupVersionKind

	// empty returns an empty object and list.
	empty() (client.Object, client.ObjectList)
	// fields returns the fields of an object that all kinds have.
	fields(client.Object) fields
	// setReplicas sets the replicas of an object.
	setReplicas(object client.Object, replicas int32, now time.Time)
	// controlledByOthers reports whether this operator must not set the replicas of a resource.
	controlledByOthers(context.Context, *clients.Clusters, *Resource) (bool, error)
	// unusable returns why a resource cannot create Machines; empty if it can.
	unusable(context.Context, *clients.Clusters, *Resource) (string, error)
}

// kinds are all kinds. The first one is used for an unknown kind, which an API server
// rejects.
var kinds = []Kind{machineDeployments{}, machinePools{}}

// Kinds returns all kinds of scalable resources.
func Kinds() []Kind { return kinds }

// KindOf returns the kind that a template's settings name.
func KindOf(settings v1alpha1.ScalableResource) Kind {
	return kindNamed(settings.Kind)
}

func kindNamed(name v1alpha1.ScalableResourceKind) Kind {
	return lo.FindOrElse(kinds, kinds[0], func(kind Kind) bool { return kind.Name() == name })
}

// KindOfMachine returns the kind of the resource that a Machine belongs to.
func KindOfMachine(machine *clusterv1.Machine) Kind {
	if labels.IsMachinePoolOwned(machine) {
		return machinePools{}
	}
	return machineDeployments{}
}

// NewObject returns an empty object of a kind, for a watch.
func NewObject(kind Kind) client.Object {
	object, _ := kind.empty()
	return object
}
