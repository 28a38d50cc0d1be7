// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
)

const machinePoolKind = "SimulatedMachinePool"

// poolRefOf returns the reference of an instance to its pool; nil if it belongs to no pool.
func poolRefOf(machine *infrav1.SimulatedMachine) *metav1.OwnerReference {
	for i, ref := range machine.OwnerReferences {
		if ref.Kind == machinePoolKind && ref.APIVersion == infrav1.GroupVersion.String() {
			return &machine.OwnerReferences[i]
		}
	}
	return nil
}

// ownerOf returns the owner of an instance: its Machine, or, in a pool, the Machine template of the MachinePool.
// Machines of a pool have no version and no bootstrap data, and a pool can have no Machines. It returns nil if no owner
// exists yet, or no longer.
func ownerOf(ctx context.Context, c client.Reader, machine *infrav1.SimulatedMachine) (*clusterv1.Machine, error) {
	ref := poolRefOf(machine)
	if ref == nil {
		return ownerMachineOf(ctx, c, machine)
	}
	pool := &infrav1.SimulatedMachinePool{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: ref.Name}, pool); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	owner, err := ownerMachinePoolOf(ctx, c, pool)
	if err != nil || owner == nil || pool.UID != ref.UID {
		return nil, err
	}
	spec := *owner.Spec.Template.Spec.DeepCopy()
	spec.FailureDomain = "" // The pool has given the instance its zone.
	return &clusterv1.Machine{Spec: spec}, nil
}
