// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// managed returns an entry of managedFields.
func managed(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestReplicasSetBy(t *testing.T) {
	const replicas, others = `{"f:spec":{"f:replicas":{},"f:template":{}}}`, `{"f:metadata":{"f:labels":{}},"f:spec":{"f:template":{"f:replicas":{}}}}`
	topology := map[string]string{clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: "workers"}
	cluster := func(replicas *int32) *clusterv1.Cluster {
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "served"}}
		c.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{Name: "workers", Replicas: replicas}, {Name: "others", Replicas: new(int32(3))}}
		return c
	}
	for name, tc := range map[string]struct {
		managers []metav1.ManagedFieldsEntry
		labels   map[string]string
		cluster  *clusterv1.Cluster
		want     string // part of the error; empty for none
	}{
		"none": {},
		"a manifest in a repository": {
			managers: []metav1.ManagedFieldsEntry{managed("kubectl", metav1.ManagedFieldsOperationUpdate, others), managed("kustomize-controller", metav1.ManagedFieldsOperationApply, replicas)},
			want:     "field manager kustomize-controller applies its spec.replicas: remove replicas from",
		},
		"a manifest without replicas":    {managers: []metav1.ManagedFieldsEntry{managed("kustomize-controller", metav1.ManagedFieldsOperationApply, others)}},
		"an update":                      {managers: []metav1.ManagedFieldsEntry{managed("kubectl-edit", metav1.ManagedFieldsOperationUpdate, replicas)}},
		"fields that cannot be read":     {managers: []metav1.ManagedFieldsEntry{managed("x", metav1.ManagedFieldsOperationApply, "{")}},
		"its topology":                   {labels: topology, cluster: cluster(new(int32(2))), want: "spec.topology of Cluster fleet/served sets its replicas: remove replicas of workers"},
		"its topology, with no Machines": {labels: topology, cluster: cluster(new(int32(0))), want: "remove replicas of workers"},
		"its topology does not set replicas": {labels: topology, cluster: cluster(nil),
			managers: []metav1.ManagedFieldsEntry{managed("capi-topology", metav1.ManagedFieldsOperationApply, others)}},
		"not in the topology":          {cluster: cluster(new(int32(2)))},
		"a topology, and no Cluster":   {labels: topology},
		"a topology that was removed":  {labels: topology, cluster: &clusterv1.Cluster{}},
		"the topology by server apply": {labels: topology, managers: []metav1.ManagedFieldsEntry{managed("capi-topology", metav1.ManagedFieldsOperationApply, replicas)}, want: "field manager capi-topology"},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, ManagedFields: tc.managers}}
			if _, err := stripMostManagedFields()(deployment); err != nil {
				t.Fatal(err)
			}
			for _, entry := range deployment.ManagedFields {
				if entry.FieldsV1 != nil {
					t.Errorf("the cache keeps the fields of %s", entry.Manager)
				}
			}
			got := ReplicasSetBy(deployment, tc.cluster)
			if (got == nil) != (tc.want == "") || got != nil && !strings.Contains(got.Error(), tc.want) {
				t.Errorf("got %v, want %q", got, tc.want)
			}
		})
	}
	if _, err := stripMostManagedFields()(cache.DeletedFinalStateUnknown{}); err != nil {
		t.Error(err)
	}
}
