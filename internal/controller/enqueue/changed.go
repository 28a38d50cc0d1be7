// SPDX-License-Identifier: Apache-2.0

package enqueue

import (
	"maps"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
)

// Deleted passes only the events of objects that no longer exist.
func Deleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// changed passes updates of an object that can change a decision: those that change what package
// snapshot reads of it, its labels or its annotations. Cluster API writes a new Machine about nine times
// in its first seconds, and core a new NodeClaim about as often, and each event that passes costs a
// reconcile of all claims and Machines of the resource.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return factsOf(before) != factsOf(after) ||
			!maps.Equal(before.GetLabels(), after.GetLabels()) || !maps.Equal(before.GetAnnotations(), after.GetAnnotations())
	}}
}

// factsOf returns what decisions depend on of an object, as a comparable value. For kinds that it does not
// know, that is everything.
func factsOf(object client.Object) any {
	switch object := object.(type) {
	case *karpv1.NodeClaim:
		return factsOfClaim(object)
	case *clusterv1.Machine:
		return factsOfMachine(object)
	case *clusterv1.MachineSet:
		return factsOfMachineSet(object)
	}
	return object.GetResourceVersion()
}

// condition is what decisions depend on of a condition. The time of its transition follows its status.
type condition struct {
	status          metav1.ConditionStatus
	reason, message string
}

func conditionOf(object conditions.Getter, kind string) condition {
	found := conditions.Get(object, kind)
	if found == nil {
		return condition{}
	}
	return condition{found.Status, found.Reason, found.Message}
}

type machineFacts struct {
	owner                             types.UID
	providerID, node, failure, launch string
	deleting, seen                    bool
	bootstrap, infrastructure, paused condition
	nodeReason, nodeReadyReason       string
}

// factsOfMachine returns what decisions depend on of a Machine.
func factsOfMachine(machine *clusterv1.Machine) machineFacts {
	facts := machineFacts{
		providerID: machine.Spec.ProviderID, node: machine.Status.NodeRef.Name,
		deleting: !machine.DeletionTimestamp.IsZero(), seen: len(machine.Status.Conditions) > 0,
		bootstrap:      conditionOf(machine, clusterv1.MachineBootstrapConfigReadyCondition),
		infrastructure: conditionOf(machine, clusterv1.MachineInfrastructureReadyCondition),
		paused:         conditionOf(machine, clusterv1.PausedCondition),
		nodeReason:     conditionOf(machine, clusterv1.MachineNodeHealthyCondition).reason,

		nodeReadyReason: conditionOf(machine, clusterv1.MachineNodeReadyCondition).reason,
	}
	if owner := metav1.GetControllerOfNoCopy(machine); owner != nil {
		facts.owner = owner.UID
	}
	if failed := failure.Of(machine); failed != nil {
		facts.launch = failed.Message
	}
	if deprecated := machine.Status.Deprecated; deprecated != nil && deprecated.V1Beta1 != nil { //nolint:staticcheck // Providers set it as long as it exists.
		facts.failure = string(lo.FromPtr(deprecated.V1Beta1.FailureReason)) + lo.FromPtr(deprecated.V1Beta1.FailureMessage) //nolint:staticcheck // As above.
	}
	return facts
}

type machineSetFacts struct {
	generation, observed int64
	replicas             int32
	deleting             bool
	scalingUp            condition
	created              string
}

// factsOfMachineSet returns what decisions depend on of a MachineSet.
func factsOfMachineSet(set *clusterv1.MachineSet) machineSetFacts {
	facts := machineSetFacts{
		generation: set.Generation, observed: set.Status.ObservedGeneration,
		replicas: lo.FromPtr(set.Status.Replicas), deleting: !set.DeletionTimestamp.IsZero(),
		scalingUp: conditionOf(set, clusterv1.MachineSetScalingUpCondition),
	}
	if deprecated := set.Status.Deprecated; deprecated != nil && deprecated.V1Beta1 != nil {
		for _, c := range deprecated.V1Beta1.Conditions { //nolint:staticcheck // No other field has it, see package snapshot.
			if c.Type == clusterv1.MachinesCreatedV1Beta1Condition {
				facts.created = string(c.Status) + c.Message
			}
		}
	}
	return facts
}

type claimFacts struct {
	providerID                      string
	deleting                        bool
	launched, registered, available condition
	availableSince                  int64
}

// factsOfClaim returns what decisions depend on of a NodeClaim.
func factsOfClaim(claim *karpv1.NodeClaim) claimFacts {
	facts := claimFacts{providerID: claim.Status.ProviderID, deleting: !claim.DeletionTimestamp.IsZero()}
	for i := range claim.Status.Conditions {
		c := &claim.Status.Conditions[i]
		switch is := (condition{c.Status, c.Reason, c.Message}); c.Type {
		case karpv1.ConditionTypeLaunched:
			facts.launched = is
		case karpv1.ConditionTypeRegistered:
			facts.registered = is
		case v1alpha1.ConditionMachineAvailable:
			facts.available = is
			// A claim that is relaunched for the same reason waits from then on.
			facts.availableSince = c.LastTransitionTime.Unix()
		}
	}
	return facts
}
