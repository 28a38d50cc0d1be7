// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"strings"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

func noProgress(format string, args ...any) planner.Stall {
	return planner.NoProgress(fmt.Sprintf(format, args...))
}

func silence(format string, args ...any) planner.Stall {
	return planner.Silence(fmt.Sprintf(format, args...))
}

// stallOf returns why Cluster API creates no Machines of a MachineDeployment; zero if it does.
func stallOf(deployment *clusterv1.MachineDeployment, sets []clusterv1.MachineSet) planner.Stall {
	name := client.ObjectKeyFromObject(deployment)
	switch {
	case !deployment.DeletionTimestamp.IsZero():
		return noProgress("MachineDeployment %s is being deleted and creates no Machines: wait until its Machines no longer exist", name)
	case deployment.Status.ObservedGeneration < deployment.Generation:
		return silence("Cluster API has not acted on MachineDeployment %s: check that its controllers run", name)
	case len(sets) == 0:
		return silence("Cluster API has created no MachineSet for MachineDeployment %s: check that its controllers run", name)
	}
	for i := range sets {
		set, key := SetOf(&sets[i]), client.ObjectKeyFromObject(&sets[i])
		if scalable.EndsFirst(&sets[i]) {
			return noProgress("MachineSet %s is being deleted, and Cluster API creates the next one when its Machines no longer exist: wait until then", key)
		}
		if why := set.blockedBy(); why != "" {
			return planner.Stall{Reason: v1alpha1.ReasonBlocked, Message: fmt.Sprintf("MachineSet %s creates no Machines: %s", key, why)}
		}
		if !set.behind() {
			continue
		}
		switch problem := set.Created; {
		case problem == "":
			return silence("Cluster API has not acted on MachineSet %s: check that its controllers run", key)
		case !isRejection(problem):
			return noProgress("MachineSet %s cannot create Machines: %s", key, problem)
		}
	}
	return planner.Stall{}
}

// blockedBy returns why a MachineSet reports that it creates no Machines, which are failing
// preflight checks and missing templates; empty if it does not (Cluster API:
// core/reconcilers/machineset/machineset_controller_status.go, setScalingUpCondition).
func (s Set) blockedBy() string {
	_, list, _ := strings.Cut(s.ScalingUp.Message, " is blocked because:\n")
	return strings.Join(lo.Map(strings.Split(list, "\n"), func(line string, _ int) string { return strings.TrimPrefix(line, "* ") }), "; ")
}

// creationProblem returns the error with which a MachineSet failed to create Machines; empty
// if it did not fail. Only the condition of the older API version has it (Cluster API:
// core/reconcilers/machineset/machineset_controller.go, createMachines).
func creationProblem(set *clusterv1.MachineSet) string {
	if set.Status.Deprecated == nil || set.Status.Deprecated.V1Beta1 == nil {
		return ""
	}
	created, found := lo.Find(set.Status.Deprecated.V1Beta1.Conditions, func(c clusterv1.Condition) bool { //nolint:staticcheck // No other field has it.
		return c.Type == clusterv1.MachinesCreatedV1Beta1Condition
	})
	if !found || created.Status == "True" {
		return ""
	}
	return created.Message
}

// isRejection reports whether an error that Cluster API reports shows that the API server or a
// webhook rejects the object. The offering can be the cause.
func isRejection(problem string) bool {
	return lo.SomeBy([]string{"denied the request", " is invalid: ", " is forbidden: "}, func(text string) bool { return strings.Contains(problem, text) })
}

// readStall returns why nothing acts on a Machine that has no provider ID; zero if a controller
// does. A controller that has acted on an object leaves a status or a finalizer.
func readStall(ctx context.Context, clusters *clients.Clusters, machine *clusterv1.Machine, read *planner.Machine) planner.Stall {
	if read.Node != "" || read.ProviderID != "" || read.Leaving {
		return planner.Stall{}
	}
	name := client.ObjectKeyFromObject(machine)
	if read.Untouched {
		return silence("Cluster API has not acted on Machine %s: check that its controllers run", name)
	}
	if ref := machine.Spec.Bootstrap.ConfigRef; ref.IsDefined() && read.Bootstrap.Status != metav1.ConditionTrue {
		if config, err := reference.Shared(ctx, clusters.Management.GetClient(), ref, clusters.Cluster.Namespace); err == nil && untouched(config) {
			return silence("the bootstrap provider has not acted on %s %s of Machine %s: check that it runs", ref.Kind, ref.Name, name)
		}
	}
	instance, err := reference.Shared(ctx, clusters.Management.GetClient(), machine.Spec.InfrastructureRef, clusters.Cluster.Namespace)
	switch {
	case err != nil:
		return planner.Stall{} // launchTimeoutSeconds limits the wait for an object that cannot be read
	case untouched(instance):
		return silence("the infrastructure provider has not acted on %s %s of Machine %s: check that it runs", instance.GetKind(), instance.GetName(), name)
	case scalable.IsProvisioned(instance) && hasProviderID(instance):
		return silence("Cluster API has not noticed that %s %s of Machine %s is provisioned: check that its controllers run", instance.GetKind(), instance.GetName(), name)
	}
	return planner.Stall{}
}

// untouched reports whether no controller has acted on an object yet.
func untouched(object *unstructured.Unstructured) bool {
	status, _ := object.Object["status"].(map[string]any)
	return len(status) == 0 && len(object.GetFinalizers()) == 0
}

func hasProviderID(instance *unstructured.Unstructured) bool {
	id, _, err := unstructured.NestedString(instance.Object, "spec", "providerID")
	return err == nil && id != ""
}
