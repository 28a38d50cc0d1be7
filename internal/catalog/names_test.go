// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// These are the annotations as cluster-autoscaler has them (cluster-autoscaler/cloudprovider/clusterapi:
// clusterapi_utils.go), which users have set on their MachineDeployments before.
func TestAnnotationsOfClusterAutoscaler(t *testing.T) {
	const domain = "capacity.cluster-autoscaler.kubernetes.io/"
	for name, tc := range map[string]struct {
		given annotations
		want  quantities
	}{
		"none": {annotations{}, quantities{}},
		"all": {annotations{domain + "cpu": "16", domain + "memory": "128Gi", domain + "ephemeral-disk": "100Gi", domain + "maxPods": "200", domain + "gpu-count": "2", domain + "gpu-type": "amd.com/gpu"},
			list("cpu", "16", "memory", "128Gi", "ephemeral-storage", "100Gi", "pods", "200", "amd.com/gpu", "2")},
		"GPUs without a type": {annotations{domain + "gpu-count": "2"}, list("nvidia.com/gpu", "2")},
		"a type without GPUs": {annotations{domain + "gpu-type": "amd.com/gpu"}, quantities{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.given.capacity()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, quantities(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	labels, err := annotations{domain + "labels": "a=b,example.com/c=d,"}.labels()
	if diff := cmp.Diff(map[string]string{"a": "b", "example.com/c": "d"}, labels); diff != "" || err != nil {
		t.Errorf("labels: %v (-want +got):\n%s", err, diff)
	}
}

// These are the labels as the CSI drivers set them on volumes.
func TestVolumesNameZones(t *testing.T) {
	for _, label := range []string{
		"topology.ebs.csi.aws.com/zone", "topology.disk.csi.azure.com/zone", "topology.gke.io/zone",
		"topology.csi.vmware.com/k8s-zone", "topology.cinder.csi.openstack.org/zone",
	} {
		if got := karpv1.NormalizedLabels[label]; got != corev1.LabelTopologyZone {
			t.Errorf("Karpenter takes %s for %q, want the zone of Nodes", label, got)
		}
	}
}
