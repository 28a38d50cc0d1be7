// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// readFailure reads why a Machine has failed for good, unless the Machine itself shows that. It reads the infrastructure object from
// the cache, because the Machine's conditions often show only that it is not ready.
func readFailure(ctx context.Context, clusters *clients.Clusters, machine *clusterv1.Machine, read *planner.Machine) {
	if read.Failure != (failure.Failure{}) || read.Node != "" || read.ProviderID != "" || read.Infrastructure.Status != metav1.ConditionFalse {
		return
	}
	object, err := reference.Shared(ctx, clusters.Management.GetClient(), machine.Spec.InfrastructureRef, clusters.Cluster.Namespace)
	if err != nil {
		// launchTimeoutSeconds limits the wait for an object that cannot be read.
		log.FromContext(ctx).V(1).Info("cannot determine whether a Machine has failed", "Machine", client.ObjectKeyFromObject(machine), "error", err.Error())
		return
	}
	if failed := failure.OfInfrastructure(object); failed != nil {
		read.Failure = *failed
	}
}
