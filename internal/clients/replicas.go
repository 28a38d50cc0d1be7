// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// stripMostManagedFields returns the transform of MachineDeployments in the cache. Of their
// managedFields it keeps only the names of the managers that apply spec.replicas.
func stripMostManagedFields() toolscache.TransformFunc {
	return func(in any) (any, error) {
		object, err := meta.Accessor(in)
		if err != nil {
			return in, nil //nolint:nilerr // It is a tombstone.
		}
		object.SetManagedFields(lo.FilterMap(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry, _ int) (metav1.ManagedFieldsEntry, bool) {
			return metav1.ManagedFieldsEntry{Manager: entry.Manager, Operation: entry.Operation}, appliesReplicas(entry)
		}))
		return in, nil
	}
}

// appliesReplicas reports whether a manager owns spec.replicas by server-side apply. An
// update, such as by kubectl scale or an autoscaler, sets them only once.
func appliesReplicas(entry metav1.ManagedFieldsEntry) bool {
	if entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
		return false
	}
	fields := map[string]any{}
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
		return false
	}
	_, applies, _ := unstructured.NestedFieldNoCopy(fields, "f:spec", "f:replicas")
	return applies
}

// ReplicasSetBy returns an error with the field manager or topology that sets the replicas
// of a MachineDeployment, and what to do; nil if there is none. It would reset replicas that
// the operator has changed, and Machines of NodeClaims would be deleted. The
// MachineDeployment must be from the cache. The Cluster is nil if it does not exist.
func ReplicasSetBy(deployment *clusterv1.MachineDeployment, cluster *clusterv1.Cluster) error {
	if name := inTopology(deployment, cluster); name != "" {
		return fmt.Errorf("spec.topology of Cluster %s/%s sets its replicas: remove replicas of %s from spec.topology.workers.machineDeployments", cluster.Namespace, cluster.Name, name)
	}
	if managers := deployment.ManagedFields; len(managers) > 0 {
		return fmt.Errorf("field manager %s applies its spec.replicas: remove replicas from the manifest that it applies", managers[0].Manager)
	}
	return nil
}

// inTopology returns the name of a MachineDeployment in its Cluster's topology, if the
// topology sets its replicas. managedFields do not always show that while both the topology
// and the operator set them.
func inTopology(deployment *clusterv1.MachineDeployment, cluster *clusterv1.Cluster) string {
	name := deployment.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
	if _, owned := deployment.Labels[clusterv1.ClusterTopologyOwnedLabel]; !owned || name == "" || cluster == nil {
		return ""
	}
	return lo.Ternary(slices.Contains(TopologyReplicas(cluster), name), name, "")
}

// TopologyReplicas returns the names of a Cluster's MachineDeployments whose replicas its
// topology sets.
func TopologyReplicas(cluster *clusterv1.Cluster) []string {
	return lo.FilterMap(cluster.Spec.Topology.Workers.MachineDeployments, func(t clusterv1.MachineDeploymentTopology, _ int) (string, bool) { return t.Name, t.Replicas != nil })
}
