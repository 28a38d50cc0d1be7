// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// HoldsInstance reports whether a hook of this operator keeps the instance of a Machine.
func HoldsInstance(machine *clusterv1.Machine) bool {
	_, holds := machine.Annotations[v1alpha1.TerminateHookAnnotation]
	return holds
}

// HasHooks reports whether a Machine has a hook of this operator, whether or not that blocks its
// deletion.
func HasHooks(machine *clusterv1.Machine) bool {
	_, drain := machine.Annotations[v1alpha1.DrainHookAnnotation]
	return drain || HoldsInstance(machine)
}

// WaitsForHook reports whether a hook of this operator blocks the deletion of a Machine.
func WaitsForHook(machine *clusterv1.Machine) bool {
	_, drain := machine.Annotations[v1alpha1.DrainHookAnnotation]
	return drain && HasNode(machine) || HoldsInstance(machine)
}

// RemoveHooks removes the hooks of this operator from a Machine, so that its deletion continues. It
// returns a conflict if they were removed since the Machine was read.
func RemoveHooks(ctx context.Context, management client.Client, machine *clusterv1.Machine) error {
	free := machine.DeepCopy()
	delete(free.Annotations, v1alpha1.DrainHookAnnotation)
	delete(free.Annotations, v1alpha1.TerminateHookAnnotation)
	if len(free.Annotations) == len(machine.Annotations) {
		return nil
	}
	return patch(ctx, management, machine, free, "removing the hooks of")
}

// holdIfPooled puts the pre-terminate hook on a Machine of a MachinePool. The infrastructure
// provider would replace an instance that replicas still count, and delete another one when
// replicas are lowered.
func holdIfPooled(machine *clusterv1.Machine) {
	if labels.IsMachinePoolOwned(machine) {
		hold(machine)
	}
}

func hold(machine *clusterv1.Machine) {
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, v1alpha1.TerminateHookAnnotation, "")
}
