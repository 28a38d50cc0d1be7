// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/stack"
)

// clusterAPI is Cluster API without Karpenter: a MachineDeployment for each offering, which this program scales. It shows
// how long machines take without Karpenter.
var clusterAPI = variant{
	name: "cluster-api",
	prepare: func(ctx context.Context, t *trial) error {
		if err := t.createInfrastructure(ctx); err != nil {
			return err
		}
		objects, err := render(clusterAPIManifests, t.offerings, nodeClass{})
		if err != nil {
			return err
		}
		return t.Create(ctx, objects)
	},
	scale: func(ctx context.Context, t *trial, n int) error {
		for i := range t.offerings {
			deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: stack.ClusterNamespace, Name: zoneName(i)}}
			patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, shareOf(n, t.offerings, i))
			if err := t.Management.Patch(ctx, deployment, client.RawPatch("application/merge-patch+json", patch)); err != nil {
				return fmt.Errorf("scaling MachineDeployment %s: %w", deployment.Name, err)
			}
		}
		return nil
	},
	up:      []tallyName{nodesReady},
	settled: []tallyName{machinesPresent, instancesPresent, nodesPresent, nodesReady},
}
