// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/karpenter-capi/karpenter-capi/test/harness/infrastructure/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/model"
)

// instance is one instance of a pool, and its Machine, which is nil if none exists yet, or no longer.
type instance struct {
	infrav1.SimulatedMachine
	machine *clusterv1.Machine
}

// instancesOf returns all instances of a pool, including those that are being deleted, in the order of their names.
// Their Machines are read from the cache, as other providers do.
func (r *machinePoolReconciler) instancesOf(ctx context.Context, pool *infrav1.SimulatedMachinePool) ([]instance, error) {
	list := &infrav1.SimulatedMachineList{}
	if err := r.live.List(ctx, list, client.InNamespace(pool.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: pool.Labels[clusterv1.ClusterNameLabel]}); err != nil {
		return nil, err
	}
	var instances []instance
	for i := range list.Items {
		if ref := poolRefOf(&list.Items[i]); ref == nil || ref.UID != pool.UID {
			continue
		}
		machine, err := ownerMachineOf(ctx, r.Client, &list.Items[i])
		if err != nil {
			return nil, err
		}
		instances = append(instances, instance{SimulatedMachine: list.Items[i], machine: machine})
	}
	slices.SortFunc(instances, func(a, b instance) int { return strings.Compare(a.Name, b.Name) })
	return instances, nil
}

// forModel returns the instances as the model that decides about them has them.
func forModel(instances []instance) []model.Instance {
	var result []model.Instance
	for i := range instances {
		var annotated bool
		if machine := instances[i].machine; machine != nil {
			_, annotated = machine.Annotations[clusterv1.DeleteMachineAnnotation]
		}
		result = append(result, model.Instance{
			UID:              string(instances[i].UID),
			Going:            !instances[i].DeletionTimestamp.IsZero(),
			DeleteAnnotation: annotated,
		})
	}
	return result
}

// newInstance returns the SimulatedMachine that a pool creates when it has a number of others.
func newInstance(pool *infrav1.SimulatedMachinePool, owner *clusterv1.MachinePool, others int) *infrav1.SimulatedMachine {
	spec := pool.Spec.SimulatedMachineSpec.DeepCopy()
	spec.ProviderID = ""
	if zones := owner.Spec.FailureDomains; len(zones) > 0 {
		spec.Zone = zones[others%len(zones)]
	}
	return &infrav1.SimulatedMachine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:    pool.Namespace,
			GenerateName: pool.Name + "-",
			Labels: map[string]string{
				clusterv1.ClusterNameLabel:     owner.Spec.ClusterName,
				clusterv1.MachinePoolNameLabel: format.MustFormatValue(owner.Name),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: infrav1.GroupVersion.String(), Kind: machinePoolKind, Name: pool.Name, UID: pool.UID,
			}},
		},
		Spec: *spec,
	}
}

// remove terminates instances, and returns how many: one without a Machine waits, because Cluster API could create the
// Machine afterwards.
func (r *machinePoolReconciler) remove(ctx context.Context, pool *infrav1.SimulatedMachinePool, instances []instance, uids []string) (removed int, err error) {
	for i := range instances {
		switch {
		case !slices.Contains(uids, string(instances[i].UID)):
		case instances[i].machine == nil && !pool.Spec.Behavior.WithoutMachines:
		default:
			if err := r.terminate(ctx, &instances[i]); err != nil {
				return removed, err
			}
			removed++
		}
	}
	return removed, nil
}

// terminate deletes the Machine of an instance, so that Cluster API drains it, or the instance if it has none.
func (r *machinePoolReconciler) terminate(ctx context.Context, instance *instance) error {
	var obj client.Object = &instance.SimulatedMachine
	if instance.machine != nil {
		obj = instance.machine
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	ctrl.LoggerFrom(ctx).V(1).Info("Removing instance", "SimulatedMachine", instance.Name)
	uid := obj.GetUID()
	return client.IgnoreNotFound(r.Delete(ctx, obj, client.Preconditions{UID: &uid}))
}

// deleteMachinesOfGone deletes the Machines of instances that were deleted without them.
func (r *machinePoolReconciler) deleteMachinesOfGone(ctx context.Context, instances []instance) error {
	for i := range instances {
		if instances[i].DeletionTimestamp.IsZero() || instances[i].machine == nil {
			continue
		}
		if err := r.terminate(ctx, &instances[i]); err != nil {
			return err
		}
	}
	return nil
}

// providerIDs returns the provider IDs of all instances that have one.
func providerIDs(instances []instance) []string {
	var ids []string
	for i := range instances {
		if id := instances[i].Spec.ProviderID; id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}
