// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"

	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// Deleted passes only the events of objects that no longer exist.
func Deleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// changed passes updates of an object that can change a decision: those that change what package snapshot reads of it, its
// labels or its annotations. Cluster API writes a new Machine about nine times in its first seconds, and core a new NodeClaim
// about as often, and each event that passes costs a reconcile of all claims and Machines of the resource.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return readOf(before) != readOf(after) ||
			!maps.Equal(before.GetLabels(), after.GetLabels()) || !maps.Equal(before.GetAnnotations(), after.GetAnnotations())
	}}
}

// MachinesMoved passes updates of a MachineSet that gets its first or loses its last Machine, or becomes or is no longer
// the one that creates Machines.
func MachinesMoved() predicate.Predicate {
	state := func(object client.Object) any {
		set, is := object.(*clusterv1.MachineSet)
		return [...]bool{is && scalable.HasMachines(set), is && scalable.IsCreating(set)}
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return state(e.ObjectOld) != state(e.ObjectNew) }}
}

// VolumeLimitsChanged passes CSINodes that are new or report other limits. A CSINode ends with its Node.
func VolumeLimitsChanged() predicate.Predicate {
	limits := func(object client.Object) map[string]int32 {
		if node, is := object.(*storagev1.CSINode); is {
			return catalog.VolumeLimits(node)
		}
		return nil
	}
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return !maps.Equal(limits(e.ObjectOld), limits(e.ObjectNew)) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// DevicesChanged passes ResourceSlices that are new or have another spec. What Nodes have published stays learned.
func DevicesChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// NodeReadyChanged passes Nodes whose condition Ready has another status.
func NodeReadyChanged() predicate.Predicate {
	ready := func(object client.Object) corev1.ConditionStatus {
		if node, is := object.(*corev1.Node); is {
			return nodeutils.GetCondition(node, corev1.NodeReady).Status
		}
		return ""
	}
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // its NodeClaim changes then
		UpdateFunc: func(e event.UpdateEvent) bool { return ready(e.ObjectOld) != ready(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// readOf returns what package snapshot reads of an object, as a comparable value. For kinds that it does not know, that is
// everything. It leaves out what is only repeated in messages, and can change often.
func readOf(object client.Object) any {
	switch object := object.(type) {
	case *karpv1.NodeClaim:
		return snapshot.ClaimOf(object)
	case *clusterv1.Machine:
		machine := snapshot.MachineOf(object)
		machine.Provider = planner.Condition{}
		return struct {
			planner.Machine
			snapshot.Node
			owner string
		}{machine, snapshot.NodeOf(object), snapshot.OwnerOf(object)}
	case *clusterv1.MachineSet:
		return snapshot.SetOf(object)
	}
	return object.GetResourceVersion()
}
