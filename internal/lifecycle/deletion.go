// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/precondition"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
)

// DrainAnnotations are the annotations of a Machine by which Cluster API leaves out its drain, or the wait for
// its volumes. They concern no other Machine.
var DrainAnnotations = []string{clusterv1.ExcludeNodeDrainingAnnotation, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation}

// IsMarked reports whether a Machine is marked for deletion.
func IsMarked(machine *clusterv1.Machine) bool {
	_, marked := machine.Annotations[v1alpha1.MarkedForDeletionAtAnnotation]
	return marked
}

// IsLeaving reports whether a Machine is marked for deletion or being deleted.
func IsLeaving(machine *clusterv1.Machine) bool {
	return !machine.DeletionTimestamp.IsZero() || IsMarked(machine)
}

// IsMoved reports whether clusterctl deletes this copy of a Machine, because it has moved the Machine
// to another management cluster. The instance and its Node stay.
func IsMoved(machine *clusterv1.Machine) bool {
	_, moved := machine.Annotations[clusterctlv1.DeleteForMoveAnnotation]
	return moved
}

// LeavingSince returns when a Machine was marked or deleted. If a user has spoiled the time, it
// returns now until the time is corrected.
func LeavingSince(machine *clusterv1.Machine, now time.Time) time.Time {
	if at, known := timestamp.Of(machine, v1alpha1.MarkedForDeletionAtAnnotation); known {
		return at
	}
	if !machine.DeletionTimestamp.IsZero() {
		return machine.DeletionTimestamp.Time
	}
	return now
}

// Mark marks a Machine for deletion, unless it is marked already. From then on replicas do not
// count it, and it is never linked. A MachineSet that scales down deletes marked Machines first
// (Cluster API: core/reconcilers/machineset/machineset_deletion_order.go). What infrastructure
// providers do with marked Machines of a MachinePool is in docs/design/machinepools.md.
//
// The pre-drain hook is removed in the same write, unless the Machine is being deleted already: then
// it would disappear before replicas are lowered. With drained, Cluster API neither drains the Node nor
// waits for its volumes, because Karpenter has drained it or there is nothing to drain. If the Machine was linked, unlinked, marked or deleted
// since it was read, or has got a Node that is not drained, nothing is written and a conflict is
// returned.
func Mark(ctx context.Context, management client.Client, machine *clusterv1.Machine, now time.Time, drained bool) error {
	if IsMarked(machine) {
		return nil
	}
	marked := machine.DeepCopy()
	marked.Annotations = lo.Assign(marked.Annotations, map[string]string{
		v1alpha1.MarkedForDeletionAtAnnotation: timestamp.Format(now),
		clusterv1.DeleteMachineAnnotation:      "",
	})
	if drained {
		excludeDrain(marked)
	}
	holdIfPooled(marked)
	if machine.DeletionTimestamp.IsZero() {
		// Karpenter has drained its Node, or Cluster API drains it. A Machine that is being deleted
		// would disappear before replicas are lowered, so it keeps the hook until it is deletable.
		delete(marked.Annotations, v1alpha1.DrainHookAnnotation)
	}
	tests := sameState(machine)
	if drained && !HasNode(machine) {
		tests = append(tests, noNode(machine))
	}
	return patch(ctx, management, machine, marked, "marking for deletion", tests...)
}

// SkipDrain ends the drain of a marked Machine by Cluster API, because the time of its claim is over. If
// its mark has changed since it was read, nothing is written and a conflict is returned.
func SkipDrain(ctx context.Context, management client.Client, machine *clusterv1.Machine) error {
	skips := machine.DeepCopy()
	excludeDrain(skips)
	if len(skips.Annotations) == len(machine.Annotations) {
		return nil
	}
	return patch(ctx, management, machine, skips, "ending the drain of", sameMark(machine))
}

func excludeDrain(machine *clusterv1.Machine) {
	for _, annotation := range DrainAnnotations {
		machine.Annotations[annotation] = ""
	}
}

// Delete deletes a Machine, unless it is being deleted, and then removes the hooks that it has. If it no
// longer exists, there is nothing to do.
func Delete(ctx context.Context, management client.Client, machine *clusterv1.Machine) error {
	if machine.DeletionTimestamp.IsZero() {
		err := management.Delete(ctx, machine, client.Preconditions{UID: &machine.UID})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("deleting Machine %s: %w", client.ObjectKeyFromObject(machine), err)
		}
		log.FromContext(ctx).Info("deleted Machine", "Machine", client.ObjectKeyFromObject(machine))
	}
	return RemoveHooks(ctx, management, machine)
}

// Timestamps are the annotations of a Machine that contain times.
var Timestamps = []string{v1alpha1.MarkedForDeletionAtAnnotation, v1alpha1.SpareSinceAnnotation}

// FixTimes sets the times of a Machine to now if they are invalid or in the future, and reports whether
// there were any. If the Machine has changed since it was read, nothing is written and a conflict is returned.
func FixTimes(ctx context.Context, management client.Client, machine *clusterv1.Machine, now time.Time) (bool, error) {
	wrong := timestamp.Corrections(machine.Annotations, Timestamps, now)
	if len(wrong) == 0 {
		return false, nil
	}
	fixed := machine.DeepCopy()
	fixed.Annotations = lo.Assign(machine.Annotations, wrong)
	return true, precondition.Write(ctx, management, machine, fixed, "setting the times to now of")
}
