// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
)

// InfrastructureOf returns the infrastructure object of a MachinePool from the cache; nil if
// it does not exist.
func InfrastructureOf(ctx context.Context, clusters *clients.Clusters, resource *Resource) (*unstructured.Unstructured, error) {
	pool := resource.API().(*clusterv1.MachinePool)
	infrastructure, err := reference.Get(ctx, clusters.Management.GetClient(), pool.Spec.Template.Spec.InfrastructureRef, clusters.Cluster.Namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", resource, err)
	}
	return infrastructure, nil
}

// MakesMachines reports whether the provider of a machine pool creates MachinePool Machines.
func MakesMachines(infrastructure *unstructured.Unstructured) bool {
	kind, _, err := unstructured.NestedString(infrastructure.Object, "status", "infrastructureMachineKind")
	return err == nil && kind != ""
}

// IsProvisioned reports whether the provider has provisioned a machine pool: by the field of
// the contract, or by the one that Cluster API v1.14 reads (controllers/external/util.go,
// IsReady).
func IsProvisioned(infrastructure *unstructured.Unstructured) bool {
	for _, field := range [][]string{{"status", "initialization", "provisioned"}, {"status", "ready"}} {
		if is, _, err := unstructured.NestedBool(infrastructure.Object, field...); err == nil && is {
			return true
		}
	}
	return false
}
