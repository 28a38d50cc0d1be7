// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"time"

	"github.com/samber/lo"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/settings"
)

// boot is how far a Machine without a Node has come.
type boot struct {
	// failed reports whether the Machine has failed for good.
	failed bool
	// stalled reports whether nothing acts on the Machine.
	stalled bool
	// since is the time from which Cluster API could act on the Machine.
	since time.Time
}

// canServe reports whether the Machine can still become the Node of a claim. launchTimeoutSeconds does not run
// while nothing acts on the Machine.
func (b boot) canServe(now time.Time, launchTimeout time.Duration) bool {
	return !b.failed && (b.stalled || now.Before(b.since.Add(launchTimeout)))
}

// startedAt returns the time from which Cluster API could act on a Machine, if both clusters have been
// reachable since upSince.
func startedAt(machine *clusterv1.Machine, upSince time.Time) time.Time {
	return lo.Latest(machine.CreationTimestamp.Time, unpausedAt(machine), upSince)
}

// unfit reports whether a Machine that serves no claim cannot serve one either.
func (s *Snapshot) unfit(machine *clusterv1.Machine) bool {
	b := boot{failed: s.failed[machine.Name] != nil, stalled: s.machineStalls[machine.Name] != nil, since: s.startedAt(machine)}
	return !s.mayHavePods(machine) && !b.canServe(s.Now, s.Settings.LaunchTimeout)
}

// CanServeNext reports whether the Machine of a claim that is being deleted can serve the next claim: it
// has no Node, can still become one, and was not given up.
func CanServeNext(ctx context.Context, clusters *operator.Clusters, durations settings.Settings, claim *karpv1.NodeClaim, machine *clusterv1.Machine, now time.Time) bool {
	if lifecycle.HasNode(machine) || lifecycle.IsLeaving(machine) || durations.SpareTTL == 0 {
		return false
	}
	since := startedAt(machine, now.Add(-clusters.Up()))
	if givenUp(claim, machine, since) {
		log.FromContext(ctx).Info("the Machine serves no other NodeClaim, because its NodeClaim was deleted when only its Node was missing",
			"Machine", client.ObjectKeyFromObject(machine), "NodeClaim", claim.Name)
		return false
	}
	b := boot{
		failed:  FailureOf(ctx, clusters, machine) != nil,
		stalled: MachineStall(ctx, clusters, machine) != nil,
		since:   since,
	}
	return b.canServe(now, durations.LaunchTimeout)
}

const (
	// karpenterGivesUp is how long Karpenter core waits until the Node of a claim has registered
	// (karpenter: pkg/controllers/nodeclaim/lifecycle/liveness.go, registrationTimeout), less what the
	// clocks of core and of the API server may differ by.
	karpenterGivesUp = 15*time.Minute - time.Minute
	// justProvisioned is how long an instance is too young for a user to know that no Node joins.
	justProvisioned = time.Minute
)

// givenUp reports whether a claim was deleted when nothing but the Node of its Machine was missing, and
// before Karpenter gave up on it. Core does not do that by itself, so a user does not want this machine.
// Its instance can be lost: vSphere's provider, for example, reports an instance that disappears before it
// has a Node only in an object that neither the Machine nor its infrastructure object mirrors
// (cluster-api-provider-vsphere: pkg/services/govmomi/service.go, NotFoundByBIOSUUIDReason).
//
// Karpenter also gives up on slow hardware, whose instance can have just been provisioned. While the
// Cluster is paused or cannot be reached, a Node cannot join, so the instance counts as provisioned from
// startedAt on if that is later.
func givenUp(claim *karpv1.NodeClaim, machine *clusterv1.Machine, startedAt time.Time) bool {
	infrastructure := conditions.Get(machine, clusterv1.MachineInfrastructureReadyCondition)
	if machine.Spec.ProviderID == "" || claim.DeletionTimestamp.IsZero() || infrastructure == nil {
		return false
	}
	since := claim.CreationTimestamp.Time
	if registered := nodeclaims.ConditionOf(claim, karpv1.ConditionTypeRegistered); registered != nil {
		since = registered.LastTransitionTime.Time // core counts from then on
	}
	return claim.DeletionTimestamp.Sub(since) < karpenterGivesUp &&
		claim.DeletionTimestamp.Sub(lo.Latest(infrastructure.LastTransitionTime.Time, startedAt)) >= justProvisioned
}
