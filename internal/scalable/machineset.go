// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/link"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
)

// observe returns how far the MachineSets are, and what keeps them from creating Machines.
func (machineDeployments) observe(ctx context.Context, clusters *operator.Clusters, snap *Snapshot) error {
	sets, err := machineSetsOf(ctx, clusters, snap.Name)
	if err != nil {
		return err
	}
	scaling := link.MachineSet{}
	for i := range sets {
		if text := problem(conditions.Get(&sets[i], clusterv1.MachineSetScalingUpCondition)); text != "" && snap.scalingProblem == "" {
			snap.scalingProblem = text
		}
		if sets[i].DeletionTimestamp.IsZero() {
			scaling.Replicas += lo.FromPtr(sets[i].Spec.Replicas)
			scaling.Behind = scaling.Behind || sets[i].Status.ObservedGeneration < sets[i].Generation
		}
	}
	if snap.Resource == nil {
		snap.scaling = scaling
		return nil
	}
	snap.stall = stallOf(snap.Resource.API().(*clusterv1.MachineDeployment), sets)
	scaling.Blocked = len(sets) == 1 && certainlyBlocked(snap, &sets[0])
	if at, lowered := loweredAt(snap.Resource); lowered {
		probeAt := at.Add(snap.times().Probe)
		// A MachineSet that has not acted on the lower number may delete Machines for it when
		// Cluster API works again.
		acted := !scaling.Behind && scaling.Replicas <= snap.Resource.Replicas()
		scaling.Lowered, scaling.Probe = true, acted && !snap.Now.Before(probeAt)
		snap.due = append(snap.due, probeAt)
	}
	snap.scaling = scaling
	if several, ok := severalSets(sets, snap); ok {
		snap.scaling, snap.machineSets = several, sets
	}
	return nil
}

// certainlyBlocked reports whether a MachineSet created none of the Machines that it lacks: it
// has observed the MachineDeployment's replicas, counts no more Machines than the cache has,
// and reports that it is blocked.
func certainlyBlocked(snap *Snapshot, set *clusterv1.MachineSet) bool {
	return set.DeletionTimestamp.IsZero() && blockedBy(set) != "" &&
		set.Status.ObservedGeneration >= set.Generation &&
		lo.FromPtr(set.Spec.Replicas) == snap.Resource.Replicas() &&
		int(lo.FromPtr(set.Status.Replicas)) <= len(snap.Machines)
}

// loweredAt returns when replicas were lowered because the MachineSet was blocked; false if
// they were last changed for another reason.
func loweredAt(resource *Resource) (time.Time, bool) {
	value, lowered := resource.GetAnnotations()[v1alpha1.ReplicasLoweredAtAnnotation]
	at, err := time.Parse(time.RFC3339, value)
	return at, lowered && err == nil
}

func machineSetsOf(ctx context.Context, clusters *operator.Clusters, name string) ([]clusterv1.MachineSet, error) {
	sets := &clusterv1.MachineSetList{}
	if err := clusters.Management.GetClient().List(ctx, sets, client.MatchingFields{operator.ResourceField: name}); err != nil {
		return nil, fmt.Errorf("listing the MachineSets of MachineDeployment %s: %w", name, err)
	}
	return sets.Items, nil
}

// controlledByOthers reports whether a MachineDeployment was adopted, and is rolling out or has its
// replicas from someone else.
func (machineDeployments) controlledByOthers(ctx context.Context, clusters *operator.Clusters, resource *Resource) (bool, error) {
	if !Adopted(resource) {
		return false, nil
	}
	deployment := resource.API().(*clusterv1.MachineDeployment)
	if contested, err := replicasContested(ctx, clusters, deployment); err != nil || contested {
		return contested, err
	}
	sets, err := machineSetsOf(ctx, clusters, resource.GetName())
	return rollingOut(sets), err
}

// replicasContested reports whether someone else sets the replicas of a MachineDeployment.
func replicasContested(ctx context.Context, clusters *operator.Clusters, deployment *clusterv1.MachineDeployment) (bool, error) {
	cluster := &clusterv1.Cluster{}
	if err := clusters.Management.GetClient().Get(ctx, clusters.Cluster, cluster); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("getting Cluster %s: %w", clusters.Cluster, err))
	}
	return operator.ReplicasSetBy(deployment, cluster) != nil, nil
}

// rollingOut tells whether Cluster API is replacing the Machines of an adopted
// resource, which its owner has changed: then it has Machines in several MachineSets,
// and which of them goes when replicas are lowered is not for us to say. Of what is
// generated, each MachineSet gets its own replicas, see link.MachineSets.
func rollingOut(sets []clusterv1.MachineSet) bool {
	return lo.CountBy(sets, func(set clusterv1.MachineSet) bool {
		return lo.FromPtr(set.Spec.Replicas) > 0 || lo.FromPtr(set.Status.Replicas) > 0
	}) > 1
}

// passOn gives raised replicas to the MachineSet while Machines leave.
//
// The MachineDeployment controller would do that, but slowly: what it adds in one
// reconcile, of which there is one a second, is what it has more than the
// MachineSet has Machines, leaving ones included (Cluster API:
// core/reconcilers/machinedeployment/mdutil/util.go, NewMSNewReplicas). With ten
// Machines leaving, one new claim would wait for eleven seconds.
//
// The MachineDeployment is read from the API server first, so that the MachineSet
// never gets more than that has; nobody else changes its replicas meanwhile. This
// only saves time: if it does not come to be, the MachineDeployment controller
// gets there.
func (machineDeployments) passOn(ctx context.Context, clusters *operator.Clusters, snap *Snapshot, replicas int32) error {
	if snap.Plan.Sets != nil {
		return scaleEachSet(ctx, clusters, snap)
	}
	if !lo.SomeBy(lo.Values(snap.Machines), IsLeaving) {
		return nil
	}
	sets, err := machineSetsOf(ctx, clusters, snap.Name)
	if err != nil || len(sets) != 1 || lo.FromPtr(sets[0].Spec.Replicas) >= replicas {
		return err
	}
	deployment := &clusterv1.MachineDeployment{}
	if err := clusters.Management.GetAPIReader().Get(ctx, snap.Resource.Key(), deployment); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("getting %s: %w", snap.Resource, err))
	}
	if deployment.UID != snap.Resource.GetUID() || lo.FromPtr(deployment.Spec.Replicas) != replicas ||
		annotations.HasPaused(deployment) || lo.FromPtr(deployment.Spec.Paused) {
		return nil // its event brings the next reconcile
	}
	_, err = patchSetReplicas(ctx, clusters.Management.GetClient(), &sets[0], replicas)
	return err
}
