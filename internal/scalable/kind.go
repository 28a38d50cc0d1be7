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
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// Kind is a kind of scalable resource. Which one it is matters nowhere but in its two
// implementations.
type Kind interface {
	// Name of the kind.
	Name() v1alpha1.ScalableResourceKind
	// Accepts returns an error if machines of this kind cannot be made from a base, or
	// not without harm.
	Accepts(base *unstructured.Unstructured, settings v1alpha1.ScalableResource) error
	// Shares tells whether several resources can refer to one object.
	Shares() bool
	// MadeOf returns the kind of what is made of a base.
	MadeOf(base schema.GroupVersionKind) schema.GroupVersionKind

	// empty returns an empty object and list.
	empty() (client.Object, client.ObjectList)
	// fields returns what all kinds have, as part of the object.
	fields(client.Object) fields
	// setReplicas of an object.
	setReplicas(object client.Object, replicas int32, now time.Time)
	// controlledByOthers reports whether the replicas of a resource are not this operator's to set.
	controlledByOthers(context.Context, *operator.Clusters, *Resource) (bool, error)
	// unusable returns why no Machines can be had from a resource; empty if they can.
	unusable(context.Context, *operator.Clusters, *Resource) (string, error)
}

// kinds are all kinds. One that is not known, which an API server does not let
// through, is the first.
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

// KindOfMachine returns the kind of the resource that a Machine is of.
func KindOfMachine(machine *clusterv1.Machine) Kind {
	return kindNamed(lo.Ternary(labels.IsMachinePoolOwned(machine), v1alpha1.ScalableResourceKindMachinePool, v1alpha1.ScalableResourceKindMachineDeployment))
}

// NewObject returns an empty object of a kind, to watch it by.
func NewObject(kind Kind) client.Object {
	object, _ := kind.empty()
	return object
}
