// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"cmp"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A user can give the labels of a generated resource to any Machine of the Cluster. Its owner decides.
func TestOwnMachines(t *testing.T) {
	controlledBy := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: name, UID: "u", Controller: new(true)}}
	}
	set := func(name string, owners []metav1.OwnerReference) *clusterv1.MachineSet {
		return &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: fixture.Served.Namespace, Name: name, OwnerReferences: owners,
			Labels: map[string]string{clusterv1.MachineDeploymentNameLabel: "general-1"}, // also edited
		}}
	}
	clusters := fixture.Clusters(
		set("general-1-abc", controlledBy("MachineDeployment", "general-1")),
		set("workers-abc", controlledBy("MachineDeployment", "workers")),
		set("alone", nil),
		set("rollout-abc", controlledBy("Rollout", "general-1")),
	)
	pooled := map[string]string{clusterv1.MachinePoolNameLabel: "general-1", v1alpha1.TemplateLabel: "general"}
	deployed := map[string]string{clusterv1.MachineDeploymentNameLabel: "general-1", v1alpha1.TemplateLabel: "general", v1alpha1.NodeClaimUIDLabel: "claim"}
	for name, tc := range map[string]struct {
		labels map[string]string
		owners []metav1.OwnerReference
		other  string // the name of its Cluster, if that is not the served one
		own    bool
	}{
		"of the resource":                         {labels: deployed, owners: controlledBy("MachineSet", "general-1-abc"), own: true},
		"of a MachineSet that the cache lacks":    {labels: deployed, owners: controlledBy("MachineSet", "general-1-new"), own: true},
		"without a controller":                    {labels: deployed, own: true},
		"of another MachineDeployment":            {labels: deployed, owners: controlledBy("MachineSet", "workers-abc")},
		"of a MachineSet without one":             {labels: deployed, owners: controlledBy("MachineSet", "alone")},
		"of a MachineSet of another kind":         {labels: deployed, owners: controlledBy("MachineSet", "rollout-abc")},
		"of another Cluster":                      {labels: deployed, owners: controlledBy("MachineSet", "general-1-abc"), other: "neighbour"},
		"of the control plane":                    {labels: deployed, owners: controlledBy("KubeadmControlPlane", "general-1")},
		"of the MachinePool":                      {labels: pooled, owners: controlledBy("MachinePool", "general-1"), own: true},
		"of another MachinePool":                  {labels: pooled, owners: controlledBy("MachinePool", "workers")},
		"of a MachinePool, with the other labels": {labels: deployed, owners: controlledBy("MachinePool", "general-1")},
	} {
		t.Run(name, func(t *testing.T) {
			machine := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "m", Labels: tc.labels, OwnerReferences: tc.owners}}
			machine.Spec.ClusterName = cmp.Or(tc.other, fixture.Served.Name)
			got, err := OwnMachines(t.Context(), clusters, []clusterv1.Machine{machine})
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(lo.Ternary(tc.own, []clusterv1.Machine{machine}, nil), got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
