// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// readStall returns why nothing acts on a Machine that has no provider ID; zero if a controller
// does. A controller that has acted on an object leaves a status or a finalizer.
func readStall(ctx context.Context, clusters *clients.Clusters, machine *clusterv1.Machine, read *planner.Machine) planner.Stall {
	if read.Node != "" || read.ProviderID != "" || read.Leaving {
		return planner.Stall{}
	}
	name := client.ObjectKeyFromObject(machine)
	if read.Untouched {
		return noProgress("Cluster API has not acted on Machine %s: check that its controllers run", name)
	}
	if ref := machine.Spec.Bootstrap.ConfigRef; ref.IsDefined() && read.Bootstrap.Status != metav1.ConditionTrue {
		if config, err := reference.Shared(ctx, clusters.Management.GetClient(), ref, clusters.Cluster.Namespace); err == nil && untouched(config) {
			return noProgress("the bootstrap provider has not acted on %s %s of Machine %s: check that it runs", ref.Kind, ref.Name, name)
		}
	}
	instance, err := reference.Shared(ctx, clusters.Management.GetClient(), machine.Spec.InfrastructureRef, clusters.Cluster.Namespace)
	switch {
	case err != nil:
		return planner.Stall{} // launchTimeoutSeconds limits the wait for an object that cannot be read
	case untouched(instance):
		return noProgress("the infrastructure provider has not acted on %s %s of Machine %s: check that it runs", instance.GetKind(), instance.GetName(), name)
	case scalable.IsProvisioned(instance) && hasProviderID(instance):
		return noProgress("Cluster API has not noticed that %s %s of Machine %s is provisioned: check that its controllers run", instance.GetKind(), instance.GetName(), name)
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
