// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
)

// Changed returns what was changed by hand in a generated MachineDeployment, and what to do; empty if it has Machines
// only in its current MachineSet. With Machines in two MachineSets, lower replicas could delete any Machine of the
// older one, so the MachineDeployment is suspended.
func Changed(ctx context.Context, clusters *clients.Clusters, resource *Resource) (string, error) {
	deployment, is := resource.API().(*clusterv1.MachineDeployment)
	if !is || Adopted(resource) {
		return "", nil
	}
	sets, err := MachineSets(ctx, clusters, resource.GetName())
	if err != nil {
		return "", err
	}
	return changed(deployment, sets), nil
}

// changed compares the MachineSets that have Machines with their MachineDeployment. Cluster API marks those that are not
// current. Before it does, they differ from the MachineDeployment, or several are not marked. A MachineDeployment
// that is being deleted creates nothing and only deletes what it owns, so it is not suspended.
func changed(deployment *clusterv1.MachineDeployment, sets []clusterv1.MachineSet) string {
	if !deployment.DeletionTimestamp.IsZero() {
		return ""
	}
	used := lo.Filter(sets, func(set clusterv1.MachineSet, _ int) bool { return HasMachines(&set) })
	slices.SortFunc(used, func(a, b clusterv1.MachineSet) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	current := lo.CountBy(sets, func(set clusterv1.MachineSet) bool { return isCurrent(deployment, &set) })
	for i := range used {
		set, oldest := &used[i], i == 0
		differences := differences(deployment, set)
		switch {
		case current == 1 && isCurrent(deployment, set):
		case oldest && len(differences) > 0:
			return fmt.Sprintf("MachineDeployment %s was changed by hand: %s. Undo the change: until then, the operator does not scale the MachineDeployment, and Karpenter does not choose its offering",
				client.ObjectKeyFromObject(deployment), strings.Join(differences, ", "))
		case current == 1 && IsObserved(deployment):
			return fmt.Sprintf("MachineDeployment %s was changed by hand, and Machines remain in its MachineSet %s, which is not its current one. Delete these Machines: until then, the operator does not scale the MachineDeployment, and Karpenter does not choose its offering",
				client.ObjectKeyFromObject(deployment), set.Name)
		default:
			return fmt.Sprintf("MachineDeployment %s was changed by hand, and Cluster API has not chosen its current MachineSet yet", client.ObjectKeyFromObject(deployment))
		}
	}
	return ""
}

// HasMachines reports whether a MachineSet has Machines or should have some.
func HasMachines(set *clusterv1.MachineSet) bool {
	return lo.FromPtr(set.Spec.Replicas) > 0 || lo.FromPtr(set.Status.Replicas) > 0
}

// isCurrent reports whether a MachineSet creates the Machines of its MachineDeployment.
func isCurrent(deployment *clusterv1.MachineDeployment, set *clusterv1.MachineSet) bool {
	return IsCreating(set) && len(differencesOfTemplate(deployment, set)) == 0
}

// differences returns why a MachineSet is not the current one of its MachineDeployment.
func differences(deployment *clusterv1.MachineDeployment, set *clusterv1.MachineSet) []string {
	all := differencesOfTemplate(deployment, set)
	if after := deployment.Spec.Rollout.After; set.CreationTimestamp.Before(&after) {
		all = append(all, "spec.rollout.after is set")
	}
	return all
}

// differencesOfTemplate returns the fields for whose sake Cluster API gives a MachineDeployment another MachineSet
// (core/reconcilers/machinedeployment/mdutil/util.go, MachineTemplateUpToDate).
func differencesOfTemplate(deployment *clusterv1.MachineDeployment, set *clusterv1.MachineSet) []string {
	is, was := &deployment.Spec.Template.Spec, &set.Spec.Template.Spec
	var all []string
	add := func(field, is, was string) {
		all = append(all, fmt.Sprintf("spec.template.spec.%s is %q instead of %q", field, is, was))
	}
	if is.Version != was.Version {
		add("version", is.Version, was.Version)
	}
	if is.FailureDomain != was.FailureDomain {
		add("failureDomain", is.FailureDomain, was.FailureDomain)
	}
	if is.InfrastructureRef != was.InfrastructureRef {
		add("infrastructureRef", nameOf(is.InfrastructureRef), nameOf(was.InfrastructureRef))
	}
	if is.Bootstrap.ConfigRef != was.Bootstrap.ConfigRef {
		add("bootstrap.configRef", nameOf(is.Bootstrap.ConfigRef), nameOf(was.Bootstrap.ConfigRef))
	}
	if !equality.Semantic.DeepEqual(is.Bootstrap.DataSecretName, was.Bootstrap.DataSecretName) {
		add("bootstrap.dataSecretName", lo.FromPtr(is.Bootstrap.DataSecretName), lo.FromPtr(was.Bootstrap.DataSecretName))
	}
	return all
}

func nameOf(ref clusterv1.ContractVersionedObjectReference) string {
	return strings.TrimSpace(ref.Kind + " " + ref.Name)
}
