// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/settings"
)

// readMachines reads the Machines of the resource.
func (s *Snapshot) readMachines(ctx context.Context, clusters *clients.Clusters, known Known) error {
	machines, err := s.listMachines(ctx, clusters, known)
	if err != nil {
		return err
	}
	// A user can give the labels of the resource to a Machine of another owner.
	if machines, err = scalable.OwnMachines(ctx, clusters, machines); err != nil {
		return err
	}
	s.Machines = make(map[string]*clusterv1.Machine, len(machines))
	for i := range machines {
		machine := &machines[i]
		if s.Resource != nil && scalable.KindOfMachine(machine) != s.Resource.Kind() {
			continue // it belongs to another resource of that name
		}
		s.Machines[machine.Name] = machine
	}
	return nil
}

// listMachines returns the Machines of the resource, each in the latest known version.
func (s *Snapshot) listMachines(ctx context.Context, clusters *clients.Clusters, known Known) ([]clusterv1.Machine, error) {
	machines := &clusterv1.MachineList{}
	// The cache has one namespace, and copies all items if a list does not name it.
	options := []client.ListOption{
		client.InNamespace(clusters.Cluster.Namespace), client.MatchingFields{clients.ResourceField: s.Name}, client.UnsafeDisableDeepCopy,
	}
	if s.Resource == nil {
		// Machines keep this label while they are being deleted after their resource.
		options = append(options, client.HasLabels{v1alpha1.TemplateLabel})
	}
	if err := clusters.Management.GetClient().List(ctx, machines, options...); err != nil {
		return nil, fmt.Errorf("listing the Machines of scalable resource %s: %w", s.Name, err)
	}
	if known.Machines == nil {
		return machines.Items, nil
	}
	return known.Machines(ctx, s.Name, machines.Items)
}

// setMachines sets what each Machine, and the objects that it refers to, show.
func (s *Snapshot) setMachines(ctx context.Context, clusters *clients.Clusters, links Known) error {
	s.setOpen(links.Open)
	s.State.ProgressedAt = links.ProgressedAt
	s.State.Machines = make([]planner.Machine, 0, len(s.Machines))
	for _, machine := range s.Machines {
		s.State.ProgressedAt = lo.Latest(s.State.ProgressedAt, progressedAt(machine, s.State.Now))
		read := MachineOf(machine)
		if read.Leaving {
			read.LeavingSince = lifecycle.LeavingSince(machine, s.State.Now)
		}
		setLaunch(ctx, clusters, &s.State, machine, &read)
		unregistered, err := isUnregistered(ctx, clusters.Workload.GetClient(), machine, s.Resource)
		if err != nil {
			return err
		}
		read.HasNode = read.HasNode && !unregistered
		s.State.Machines = append(s.State.Machines, read)
	}
	return nil
}

// progressedAt returns when Cluster API created a Machine or last changed its phase. A time after now is no evidence yet.
func progressedAt(machine *clusterv1.Machine, now time.Time) time.Time {
	at := lo.Latest(machine.CreationTimestamp.Time, machine.Status.LastUpdated.Time)
	if at.After(now) {
		return time.Time{}
	}
	return at
}

// setOpen sets the Machines of the claims whose links are being written.
func (s *Snapshot) setOpen(open map[types.UID]types.UID) {
	if len(open) == 0 {
		return
	}
	names := make(map[types.UID]string, len(s.Machines))
	for name, machine := range s.Machines {
		names[machine.UID] = name
	}
	s.State.Open = lo.MapValues(open, func(machine, _ types.UID) string { return names[machine] })
}

// setLaunch sets whether the Machine has failed, or nothing acts on it. The state must have its times.
func setLaunch(ctx context.Context, clusters *clients.Clusters, state *planner.State, machine *clusterv1.Machine, read *planner.Machine) {
	readFailure(ctx, clusters, machine, read)
	if state.MayStall(*read) {
		read.Stall = readStall(ctx, clusters, machine, read)
	}
}

// ReadMachine reads the state of one Machine and its claim. Other Machines and claims of the resource are not in it, nor
// whether the Node of the Machine has registered.
func ReadMachine(ctx context.Context, clusters *clients.Clusters, of settings.Settings, claim *karpv1.NodeClaim, machine *clusterv1.Machine, now time.Time) planner.State {
	state := stateOf(clusters, now)
	setSettings(&state, of)
	read := MachineOf(machine)
	setLaunch(ctx, clusters, &state, machine, &read)
	state.Claims, state.Machines = []planner.Claim{ClaimOf(claim)}, []planner.Machine{read}
	return state
}

// MachineOf returns what a Machine itself shows.
func MachineOf(machine *clusterv1.Machine) planner.Machine {
	infrastructure := conditions.Get(machine, clusterv1.MachineInfrastructureReadyCondition)
	read := planner.Machine{
		Name:           machine.Name,
		Created:        machine.CreationTimestamp.Time,
		Claim:          lifecycle.ClaimUID(machine),
		ProviderID:     machine.Spec.ProviderID,
		Leaving:        lifecycle.IsLeaving(machine),
		HasNode:        lifecycle.HasNode(machine),
		WasLinked:      lifecycle.HasSpareTime(machine),
		SpareSince:     lifecycle.SpareSince(machine),
		Marked:         lifecycle.IsMarked(machine),
		Hooked:         lifecycle.HoldsInstance(machine),
		ResumedAt:      resumedAt(machine),
		Bootstrap:      conditionOf(conditions.Get(machine, clusterv1.MachineBootstrapConfigReadyCondition)),
		Infrastructure: conditionOf(infrastructure),
		Untouched:      len(machine.Status.Conditions) == 0,
		Node:           machine.Status.NodeRef.Name,
		Deleting:       !machine.DeletionTimestamp.IsZero(),
	}
	if failed := failure.Of(machine); failed != nil {
		read.Failure = *failed
	}
	if infrastructure != nil {
		read.ProvisionedAt = infrastructure.LastTransitionTime.Time
	}
	read.Provider.Reason, read.Provider.Message = failure.ReportedV1Beta1(machine)
	return read
}

// resumedAt returns when Cluster API resumed work on a paused object; zero if that is not known.
func resumedAt(object conditions.Getter) time.Time {
	if paused := conditions.Get(object, clusterv1.PausedCondition); paused != nil && paused.Status == metav1.ConditionFalse {
		return paused.LastTransitionTime.Time
	}
	return time.Time{}
}

// conditionOf returns what a condition reports; zero if an object lacks it.
func conditionOf(condition *metav1.Condition) planner.Condition {
	if condition == nil {
		return planner.Condition{}
	}
	return planner.Condition{Status: condition.Status, Reason: condition.Reason, Message: condition.Message}
}

// isUnregistered reports whether a Machine without a link has a Node that Karpenter has not
// registered, so that no Pod can be on it. Nodes of an adopted resource may join without Karpenter's
// taint: there it is enough that Karpenter has not registered the Node.
func isUnregistered(ctx context.Context, workload client.Reader, machine *clusterv1.Machine, resource *scalable.Resource) (bool, error) {
	if !lifecycle.HasNode(machine) || lifecycle.ClaimUID(machine) != "" {
		return false, nil
	}
	node := &corev1.Node{}
	if err := workload.Get(ctx, types.NamespacedName{Name: machine.Status.NodeRef.Name}, node); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("getting Node %s: %w", machine.Status.NodeRef.Name, err))
	}
	if _, registered := node.Labels[karpv1.NodeRegisteredLabelKey]; !registered && resource != nil && scalable.Adopted(resource) {
		return true, nil
	}
	return lo.ContainsBy(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.MatchTaint(&karpv1.UnregisteredNoExecuteTaint) }), nil
}

// readFailure reads why a Machine has failed for good, or has no provider ID yet, unless the Machine itself shows that. It reads the
// infrastructure object from the cache, because the Machine's conditions often show only that it is not ready.
func readFailure(ctx context.Context, clusters *clients.Clusters, machine *clusterv1.Machine, read *planner.Machine) {
	if read.Failure != (failure.Failure{}) || read.Node != "" || read.ProviderID != "" || read.Infrastructure.Status != metav1.ConditionFalse {
		return
	}
	object, err := reference.Shared(ctx, clusters.Management.GetClient(), machine.Spec.InfrastructureRef, clusters.Cluster.Namespace)
	if err != nil {
		// launchTimeoutSeconds limits the wait for an object that cannot be read.
		log.FromContext(ctx).V(1).Info("cannot determine whether a Machine has failed", "Machine", client.ObjectKeyFromObject(machine), "error", err.Error())
		return
	}
	if failed := failure.OfInfrastructure(object); failed != nil {
		read.Failure = *failed
	}
	if reason, message := failure.Reported(object); message != "" {
		read.Provider.Reason, read.Provider.Message = reason, message
	}
}

// Node is what a Machine itself shows of the Node that it has or had.
type Node struct {
	// Removed reports whether Cluster API does not find the Node any more. It looks for it by the provider ID of the Machine, so
	// it reports the same when a provider changes this ID.
	Removed bool
	// InstanceGone is why the instance no longer exists; empty if it exists. If GaveUp is true, its provider only gave up on it,
	// and the Node must confirm that.
	InstanceGone string
	GaveUp       bool
}

// NodeOf returns what a Machine itself shows of its Node.
func NodeOf(machine *clusterv1.Machine) Node {
	var node Node
	healthy := conditions.Get(machine, clusterv1.MachineNodeHealthyCondition)
	node.Removed = healthy != nil && healthy.Reason == clusterv1.MachineNodeDeletedReason
	node.InstanceGone, node.GaveUp = failure.InstanceGone(machine)
	return node
}

// InstanceGone returns why the instance of a Machine with a Node counts as gone; empty if it does not. If time alone
// can change that, left is the time until then, because no event comes. It reads the Node from the cache only if the
// answer depends on how long the Node has been silent.
func InstanceGone(ctx context.Context, clusters *clients.Clusters, machine *clusterv1.Machine, now time.Time) (why string, left time.Duration, err error) {
	shown := NodeOf(machine)
	if !shown.GaveUp {
		return shown.InstanceGone, 0, nil
	}
	why = shown.InstanceGone
	node, name := &corev1.Node{}, machine.Status.NodeRef.Name
	if err := clusters.Workload.GetClient().Get(ctx, types.NamespacedName{Name: name}, node); err != nil {
		if apierrors.IsNotFound(err) {
			return why, 0, nil // nothing runs on a Node that does not exist
		}
		return "", 0, fmt.Errorf("getting Node %s: %w", name, err)
	}
	silent, left := failure.Silent(node, now)
	if !silent {
		why = ""
	}
	return why, left, nil
}
