// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// markAndUnlink marks the Machines for deletion that the plan marks, and unlinks Machines whose
// claim was deleted before they became a Node, or has another Machine. It notes from when on Machines
// with a Node are spare.
func (r *Reconciler) markAndUnlink(ctx context.Context, snap *decided) error {
	management := r.clusters.Management.GetClient()
	marks := sets.New(snap.Plan.Marks...)
	var errs []error
	for _, name := range slices.Concat(snap.Plan.Marks, snap.Plan.Unlinks) {
		machine := snap.Machines[name]
		serves, err := r.stillServes(ctx, snap, machine)
		if err != nil || serves {
			errs = append(errs, err)
			continue
		}
		logger := log.FromContext(ctx).WithValues("Machine", client.ObjectKeyFromObject(machine))
		if marks.Has(name) {
			// If it has a Node, Karpenter has not drained it, so Cluster API does.
			if err = lifecycle.Mark(ctx, management, machine, snap.State.Now, !lifecycle.HasNode(machine)); err == nil {
				logger.Info("marked Machine that serves no NodeClaim for deletion", "because", snap.Plan.Because[name])
				r.reportSurplus(snap, machine)
			}
		} else if err = lifecycle.Unlink(ctx, management, machine, snap.State.Now); err == nil {
			logger.Info("unlinked Machine that serves no NodeClaim", "because", snap.Plan.Because[name])
		}
		errs = append(errs, err)
	}
	for _, name := range withoutSpareTime(snap) {
		errs = append(errs, lifecycle.NoteSpare(ctx, management, snap.Machines[name], snap.State.Now))
	}
	return errors.Join(errs...)
}

// reportSurplus reports a surplus Machine of an adopted resource: a user or another controller has
// raised its replicas.
func (r *Reconciler) reportSurplus(snap *decided, machine *clusterv1.Machine) {
	if snap.Resource != nil && scalable.Adopted(snap.Resource) && !lifecycle.HasSpareTime(machine) && lifecycle.ClaimUID(machine) == "" {
		r.recorder.Publish(surplusMachine(snap.Resource, machine))
	}
}

// withoutSpareTime returns the spare Machines with a Node that lack the annotation spare-since.
// Machines without a Node are spare since they were created or unlinked.
func withoutSpareTime(snap *decided) []string {
	return lo.Filter(snap.Plan.Spares, func(name string, _ int) bool {
		machine := snap.Machines[name]
		return lifecycle.HasNode(machine) && !lifecycle.HasSpareTime(machine)
	})
}

// stillServes reads from the API server whether the claim of a Machine's link exists, although the
// cache lacks it. Pods may run on the Machine, so the cache is not enough to separate it from its
// claim. This costs one read for each Machine that is removed in this way.
//
// If the claim exists, its Machine is removed only if it is the second one: the claim has neither its
// provider ID nor its Node, and the API server has the other Machine, linked to the claim and not leaving.
// If the claim names no scalable resource, a user or a tool has removed the annotation: the
// claim gets it back and keeps its Machine.
func (r *Reconciler) stillServes(ctx context.Context, snap *decided, machine *clusterv1.Machine) (bool, error) {
	uid, name := lifecycle.ClaimUID(machine), lifecycle.ClaimName(machine)
	if uid == "" || name == "" {
		return false, nil
	}
	claim := &karpv1.NodeClaim{}
	if err := r.clusters.Workload.GetAPIReader().Get(ctx, types.NamespacedName{Name: name}, claim); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("getting NodeClaim %s of Machine %s: %w", name, client.ObjectKeyFromObject(machine), err)
	}
	if claim.UID != uid {
		return false, nil // another claim of that name
	}
	switch named := claim.Annotations[v1alpha1.ScalableResourceAnnotation]; {
	case named == "" && isItsMachine(machine, claim):
		return true, r.restoreAnnotations(ctx, snap, machine, claim)
	case named != snap.Name:
		return false, nil // it names another resource by now
	}
	other, served := snap.Plan.Served[uid]
	if !served || lifecycle.HasIDOrNodeOf(machine, claim) {
		return true, nil
	}
	first := &clusterv1.Machine{}
	if err := r.clusters.Management.GetAPIReader().Get(ctx, types.NamespacedName{Namespace: machine.Namespace, Name: other}, first); err != nil {
		return true, client.IgnoreNotFound(fmt.Errorf("getting Machine %s/%s of NodeClaim %s: %w", machine.Namespace, other, name, err))
	}
	// Another Machine of that name, even of another Cluster, does not serve the claim.
	return first.UID != snap.Machines[other].UID || lifecycle.ClaimUID(first) != uid || lifecycle.IsLeaving(first), nil
}
