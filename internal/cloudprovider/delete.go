// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/settings"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// Delete unlinks the claim's Machine or marks it for deletion, in any of its states, and
// returns NodeClaimNotFoundError when the claim has no Machine. Core calls it when the
// Node is drained, or if there never was one, and then again every 5 seconds.
//
// A Machine that can still become a Node, and was not given up, is not marked but unlinked: it is spare
// for spareTTLSeconds and can serve the next claim that Karpenter creates for the same Pods. So is
// a Machine that is not created yet. If Karpenter gave up on the claim because its Node is missing, Delete first marks the
// offering as unavailable. While the Cluster or the resource is paused, nothing
// is changed and the claim waits. If it has no Machine then, or the Cluster does not exist, Delete
// returns another error: see checkAbsence. A Machine that this process has marked is removed wherever
// clusterctl moves it, so its absence is enough.
//
// While a cluster cannot be reached, it changes nothing and returns another error.
func (c *CloudProvider) Delete(ctx context.Context, claim *karpv1.NodeClaim) error {
	if err := c.clusters.Guard(ctx); err != nil {
		return err
	}
	machines, err := c.machinesOf(ctx, claim)
	if err != nil {
		return err
	}
	// A user can write the link of a claim on a Machine of another owner, which must stay as it is.
	if machines, err = scalable.OwnMachines(ctx, c.clusters, machines); err != nil {
		return err
	}
	left := false
	var errs []error
	for i := range machines {
		released, err := c.markOrUnlink(ctx, claim, &machines[i])
		errs = append(errs, client.IgnoreNotFound(err))
		left = left || !released
	}
	if left || errors.Join(errs...) != nil {
		return errors.Join(errs...)
	}
	if _, marked := c.marked.Get(string(claim.UID)); !marked {
		if err := c.checkAbsence(ctx); err != nil {
			return err
		}
	}
	return cloudprovider.NewNodeClaimNotFoundError(fmt.Errorf("no Machine serves NodeClaim %s", claim.Name))
}

// machinesOf returns the Machines of a claim: those that are linked to it, or the one
// with its provider ID if a user has removed the link.
func (c *CloudProvider) machinesOf(ctx context.Context, claim *karpv1.NodeClaim) ([]clusterv1.Machine, error) {
	cached := c.clusters.Management.GetClient()
	machines, err := c.machines(ctx, cached, client.MatchingFields{clients.MachineClaimField: string(claim.UID)})
	if err != nil || len(machines) > 0 {
		c.remember(claim, machines)
		return machines, err
	}
	if !c.hadItsMachine(claim) {
		// The cache can lack the newest link. Therefore this reads from the API server before the
		// claim's finalizer is removed: no machine that costs money may be left.
		//
		// The cache has only the served Cluster's Machines, but the API server has all. NodeClaims of
		// workload clusters that were restored from one backup can have the same UID.
		machines, err = c.machines(ctx, c.clusters.Management.GetAPIReader(), client.InNamespace(c.clusters.Cluster.Namespace),
			client.MatchingLabels{clusterv1.ClusterNameLabel: c.clusters.Cluster.Name}, lifecycle.LinkedTo(claim.UID))
		if err != nil || len(machines) > 0 {
			return machines, err
		}
	}
	if _, provisional := planner.ParseProvisionalID(claim.Status.ProviderID); provisional || claim.Status.ProviderID == "" {
		return nil, nil
	}
	byID, err := c.machines(ctx, cached, client.MatchingFields{clients.MachineProviderIDField: claim.Status.ProviderID})
	for _, machine := range byID {
		if lifecycle.ClaimUID(&machine) == "" && lifecycle.HasNode(&machine) && machine.Labels[v1alpha1.TemplateLabel] != "" {
			machines = append(machines, machine)
		}
	}
	return machines, err
}

// remember stores that the cache has had the Machine of a registered claim that ends.
func (c *CloudProvider) remember(claim *karpv1.NodeClaim, machines []clusterv1.Machine) {
	its := func(machine clusterv1.Machine) bool {
		return machine.Spec.ProviderID != "" && machine.Spec.ProviderID == claim.Status.ProviderID
	}
	if slices.ContainsFunc(machines, its) && nodeclaims.IsRegistered(claim) {
		c.ending.SetDefault(string(claim.UID), claim.Status.ProviderID)
	}
}

// hadItsMachine reports whether the cache of this process has had the Machine of a registered claim,
// and so has seen since that it no longer exists or was unlinked. Then the cache is not behind with
// the links of the claim: a registered claim is linked to no second Machine (package link), so
// all its links are older than its Node, and a watch shows writes in their order.
func (c *CloudProvider) hadItsMachine(claim *karpv1.NodeClaim) bool {
	providerID, found := c.ending.Get(string(claim.UID))
	return found && providerID == claim.Status.ProviderID
}

// markOrUnlink unlinks a Machine and returns true, or marks it for deletion.
func (c *CloudProvider) markOrUnlink(ctx context.Context, claim *karpv1.NodeClaim, machine *clusterv1.Machine) (released bool, err error) {
	paused, err := scalable.MachineSuspended(ctx, c.clusters, machine)
	if err != nil {
		return false, err
	}
	logger := log.FromContext(ctx).WithValues("Machine", client.ObjectKeyFromObject(machine), "NodeClaim", claim.Name)
	if paused {
		logger.Info("the NodeClaim waits because its Machine is paused")
		return false, nil
	}
	why, failed, err := c.whyNotSpare(ctx, claim, machine)
	if err != nil {
		return false, err
	}
	if why != "" {
		if ends, err := c.endsWithCluster(ctx, machine); err != nil || ends {
			return false, err
		}
		if err := c.markOffering(ctx, claim, failed); err != nil {
			return false, err
		}
		return false, c.mark(ctx, claim, machine)
	}
	if err := c.resetProviderID(ctx, claim); err != nil {
		return false, err
	}
	if err := lifecycle.Unlink(ctx, c.clusters.Management.GetClient(), machine, c.clock.Now()); err != nil {
		return false, err
	}
	logger.Info("unlinked Machine, which can serve another NodeClaim")
	return true, nil
}

// mark marks a Machine for deletion. If its Node is not drained, Cluster API drains it, until the
// terminationGracePeriod of the claim is over.
func (c *CloudProvider) mark(ctx context.Context, claim *karpv1.NodeClaim, machine *clusterv1.Machine) error {
	management := c.clusters.Management.GetClient()
	if !lifecycle.IsMarked(machine) {
		drained, err := c.isDrained(ctx, claim, machine)
		if err != nil {
			return err
		}
		if err := lifecycle.Mark(ctx, management, machine, c.clock.Now(), drained); err != nil {
			return err
		}
	} else if c.isTerminated(claim) {
		if err := lifecycle.SkipDrain(ctx, management, machine); err != nil {
			return err
		}
	}
	c.marked.SetDefault(string(claim.UID), struct{}{})
	return nil
}

// endsWithCluster reports whether Cluster API deletes a Machine with its Cluster. Such a Machine is not
// marked: the mark would add a hook that package clusterdeletion has removed.
func (c *CloudProvider) endsWithCluster(ctx context.Context, machine *clusterv1.Machine) (bool, error) {
	if machine.DeletionTimestamp.IsZero() {
		return false, nil
	}
	cluster, err := c.clusters.Cached(ctx)
	if err != nil || cluster == nil {
		return err == nil, err
	}
	return !cluster.DeletionTimestamp.IsZero(), nil
}

// whyNotSpare returns why the Machine of a claim that is deleted cannot serve another claim; empty if it can. failed is the
// failure if Karpenter has given up on the claim because its Node is missing.
func (c *CloudProvider) whyNotSpare(ctx context.Context, claim *karpv1.NodeClaim, machine *clusterv1.Machine) (why planner.Reason, failed failure.Failure, err error) {
	template, err := c.clusters.SharedTemplate(ctx, machine.Labels[v1alpha1.TemplateLabel])
	if err != nil {
		return "", failed, err
	}
	state := snapshot.ReadMachine(ctx, c.clusters, settings.Of(template), claim, machine, c.clock.Now())
	why = state.WhyNotSpare(state.Claims[0], state.Machines[0])
	if why == planner.GivenUp {
		log.FromContext(ctx).Info("the Machine serves no other NodeClaim", "Machine", client.ObjectKeyFromObject(machine), "NodeClaim", claim.Name, "because", why)
	}
	return why, state.RegistrationFailure(state.Claims[0], state.Machines[0]), nil
}

// resetProviderID sets the claim's provider ID to its provisional one, because Karpenter
// core fails if the next claim has the same ID (pkg/controllers/state/cluster.go,
// cleanupNodeClaim). It reads the claim from the API server: if core has registered the
// Node after the cache was updated, Pods can run on it. Then it returns an error, and the
// Machine stays linked.
func (c *CloudProvider) resetProviderID(ctx context.Context, claim *karpv1.NodeClaim) error {
	live := &karpv1.NodeClaim{}
	if err := c.clusters.Workload.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(claim), live); err != nil {
		return fmt.Errorf("getting NodeClaim %s: %w", claim.Name, err)
	}
	if live.UID != claim.UID || nodeclaims.IsRegistered(live) {
		return fmt.Errorf("NodeClaim %s has changed since it was read, so its Machine stays linked until the next attempt", claim.Name)
	}
	return nodeclaims.ResetProviderID(ctx, c.clusters.Workload.GetClient(), live)
}
