// SPDX-License-Identifier: Apache-2.0

package fleetmetrics

import (
	"context"
	"fmt"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/metrics"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
)

// watch observes launches until the context ends.
func (c *Controller) watch(ctx context.Context) error {
	l := &launches{of: map[types.UID]*launch{}, observe: observe}
	ends := make([]func(), 0, 3)
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	for _, watched := range []struct {
		in      cache.Cache
		kind    client.Object
		handler toolscache.ResourceEventHandler
	}{
		{c.clusters.Workload.GetCache(), &v1alpha1.KarpenterMachineTemplate{}, templateEvents()},
		{c.clusters.Workload.GetCache(), &karpv1.NodeClaim{}, c.claimEvents(ctx, l)},
		{c.clusters.Management.GetCache(), &clusterv1.Machine{}, c.machineEvents(l)},
	} {
		informer, err := watched.in.GetInformer(ctx, watched.kind)
		if err != nil {
			return fmt.Errorf("watching %T for metrics: %w", watched.kind, err)
		}
		registration, err := informer.AddEventHandler(watched.handler)
		if err != nil {
			return fmt.Errorf("watching %T for metrics: %w", watched.kind, err)
		}
		ends = append(ends, func() { _ = informer.RemoveEventHandler(registration) })
	}
	<-ctx.Done()
	return nil
}

// The reasons of launches that fail and that stall.
var (
	failures = []string{
		v1alpha1.ReasonInsufficientCapacity, v1alpha1.ReasonLaunchTimeout, v1alpha1.ReasonLimitReached, v1alpha1.ReasonMachineFailed,
		v1alpha1.ReasonNameTaken, v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonScalableResourceUnusable,
	}
	stalls = []string{v1alpha1.ReasonBlocked, v1alpha1.ReasonNoProgress, v1alpha1.ReasonRejected}
)

// templateEvents handles the events of templates. The counters of a template begin with 0: Prometheus does not see the increase from
// nothing to 1, so the first failure would neither be in a dashboard nor count for an alert.
func templateEvents() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		template := object.(*v1alpha1.KarpenterMachineTemplate).Name
		for _, reason := range failures {
			metrics.LaunchFailures.WithLabelValues(template, reason)
		}
		for _, reason := range stalls {
			metrics.LaunchStalls.WithLabelValues(template, reason)
		}
	}}
}

// claimEvents handles the events of NodeClaims.
func (c *Controller) claimEvents(ctx context.Context, l *launches) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) { c.seeClaim(ctx, l, object.(*karpv1.NodeClaim), initial) },
		UpdateFunc: func(before, after any) {
			countFailures(before.(*karpv1.NodeClaim), after.(*karpv1.NodeClaim))
			c.seeClaim(ctx, l, after.(*karpv1.NodeClaim), false)
		},
		DeleteFunc: func(object any) {
			if claim, ok := last(object).(*karpv1.NodeClaim); ok {
				l.forget(claim.UID)
			}
		},
	}
}

// machineEvents handles the events of Machines.
func (c *Controller) machineEvents(l *launches) toolscache.ResourceEventHandler {
	see := func(object any, initial bool) {
		found := object.(*clusterv1.Machine)
		if claim := lifecycle.ClaimUID(found); claim != "" && !l.has(claim, machine) {
			steps := []reached{{machine, found.CreationTimestamp.Time}, {step: linked}}
			if !initial {
				steps[1].at = c.clock.Now() // the API has no time of the link
			}
			l.see(claim, "", initial, steps...)
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, after any) { see(after, false) },
		DeleteFunc: func(object any) {
			if found, ok := last(object).(*clusterv1.Machine); ok {
				l.forgetUnseen(lifecycle.ClaimUID(found))
			}
		},
	}
}

// last returns the last state of a deleted object.
func last(object any) any {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		return unknown.Obj
	}
	return object
}

// seeClaim records the steps that a NodeClaim shows.
func (c *Controller) seeClaim(ctx context.Context, l *launches, claim *karpv1.NodeClaim, initial bool) {
	if !clients.IsTemplate(claim.Spec.NodeClassRef) || l.has(claim.UID, initialized) {
		return
	}
	steps := []reached{{created, claim.CreationTimestamp.Time}}
	if hasRealID(claim) && !l.has(claim.UID, providerID) {
		id := reached{step: providerID}
		if !initial {
			id.at = c.clock.Now() // the API has no time of the ID
		}
		steps = append(steps, id)
	}
	if nodeclaims.IsRegistered(claim) && !l.has(claim.UID, node) {
		steps = append(steps, reached{node, c.nodeCreated(ctx, claim)})
	}
	if condition := nodeclaims.ConditionOf(claim, karpv1.ConditionTypeInitialized); condition.IsTrue() {
		steps = append(steps, reached{initialized, condition.LastTransitionTime.Time})
	}
	l.see(claim.UID, claim.Spec.NodeClassRef.Name, initial, steps...)
}

// hasRealID reports whether a NodeClaim has the provider ID of a Machine.
func hasRealID(claim *karpv1.NodeClaim) bool {
	_, provisional := planner.ParseProvisionalID(claim.Status.ProviderID)
	return claim.Status.ProviderID != "" && !provisional
}

// nodeCreated returns when the Node of a registered NodeClaim was created; zero if the cache lacks the Node.
func (c *Controller) nodeCreated(ctx context.Context, claim *karpv1.NodeClaim) time.Time {
	node := &corev1.Node{}
	if err := c.clusters.Workload.GetClient().Get(ctx, types.NamespacedName{Name: claim.Status.NodeName}, node); err != nil {
		return time.Time{}
	}
	return node.CreationTimestamp.Time
}

// countFailures counts a launch that has failed or stalled.
func countFailures(before, after *karpv1.NodeClaim) {
	was, is := nodeclaims.ConditionOf(before, v1alpha1.ConditionMachineAvailable), nodeclaims.ConditionOf(after, v1alpha1.ConditionMachineAvailable)
	if is == nil || !clients.IsTemplate(after.Spec.NodeClassRef) || same(was, is) {
		return
	}
	template := after.Spec.NodeClassRef.Name
	switch {
	case is.IsFalse():
		metrics.LaunchFailures.WithLabelValues(template, is.Reason).Inc()
	case nodeclaims.IsStalled(after), nodeclaims.IsRejected(after):
		metrics.LaunchStalls.WithLabelValues(template, is.Reason).Inc()
	}
}

// same reports whether a condition has the status and the reason that it had.
func same(was, is *status.Condition) bool {
	return was != nil && was.Status == is.Status && was.Reason == is.Reason
}
