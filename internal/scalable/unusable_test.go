// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

func TestUnusable(t *testing.T) {
	const without = "AzureMachinePool clusters/pool has no MachinePool Machines (status.infrastructureMachineKind is not set), so single machines cannot be deleted: turn them on in the infrastructure provider, or set spec.scalableResource.kind to MachineDeployment"
	managed := map[string]string{clusterv1.ReplicasManagedByAnnotation: "external-autoscaler"}
	for name, tc := range map[string]struct {
		annotations map[string]string
		status      string // of the infrastructure; empty if there is none
		want        string
		handsOff    bool
	}{
		"no infrastructure yet":                       {},
		"an infrastructure that is not ready":         {status: `{ready: false}`},
		"one that makes Machines, before it is ready": {status: `{infrastructureMachineKind: AzureMachinePoolMachine}`},
		"one that makes Machines":                     {status: `{ready: true, infrastructureMachineKind: AzureMachinePoolMachine}`},
		"one that is ready and makes none":            {status: `{ready: true}`, want: without},
		"one with an empty kind of Machines":          {status: `{ready: true, infrastructureMachineKind: ""}`, want: without},
		"one that is ready by the contract":           {status: `{initialization: {provisioned: true}}`, want: without},
		"replicas of another controller": {status: `{ready: true, infrastructureMachineKind: AzureMachinePoolMachine}`, annotations: managed, handsOff: true,
			want: "another controller sets the replicas of MachinePool clusters/pool: turn that off, and remove the annotation cluster.x-k8s.io/replicas-managed-by"},
		"replicas of another controller, and no infrastructure": {annotations: managed, want: "another controller sets", handsOff: true},
		"replicas-managed-by is false":                          {annotations: map[string]string{clusterv1.ReplicasManagedByAnnotation: "false"}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.status != "" {
				objects = append(objects, fixture.PoolInfrastructure(t, tc.status))
			}
			clusters, pool := fixture.Clusters(objects...), New(fixture.MachinePool(tc.annotations))
			got, err := Unusable(t.Context(), clusters, pool)
			if err != nil || (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q (%v), want %q", got, err, tc.want)
			}
			if paused, err := pool.Suspended(t.Context(), clusters); err != nil || paused != tc.handsOff {
				t.Errorf("paused: got %t (%v)", paused, err)
			}
		})
	}
	if got, err := Unusable(t.Context(), fixture.Clusters(), New(&clusterv1.MachineDeployment{})); err != nil || got != "" {
		t.Errorf("a MachineDeployment: got %q (%v)", got, err)
	}
}
