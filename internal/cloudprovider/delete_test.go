// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// The API server has the Machines of all Clusters. Two workload clusters that were restored
// from one backup have NodeClaims with the same UID.
func TestDeleteLeavesMachinesOfOtherClusters(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster string
		left    bool
	}{
		"a link that the cache lacks":  {cluster: "served", left: true},
		"a Machine of another Cluster": {cluster: "neighbour"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := launched("claim", "small")
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: "fleet", Name: "m", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
				Labels: map[string]string{clusterv1.ClusterNameLabel: tc.cluster, v1alpha1.NodeClaimUIDLabel: string(claim.UID)},
			}}
			machine.Spec.ClusterName = tc.cluster
			served := types.NamespacedName{Namespace: "fleet", Name: "served"}
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
			api := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(machine, cluster).Build()
			cached := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(cluster).
				WithIndex(&clusterv1.Machine{}, clients.MachineClaimField, func(client.Object) []string { return nil }).Build()
			both := fixture.Cluster{Client: cached, Live: api}
			provider := New(&clients.Clusters{Cluster: served, Workload: both, Management: both}, nil, clock.RealClock{})

			machines, err := provider.machinesOf(t.Context(), claim)
			if err != nil || (len(machines) == 1) != tc.left {
				t.Errorf("got %d Machines and %v, want one: %t", len(machines), err, tc.left)
			}
			if tc.left {
				return
			}
			leavesAlone(t, provider, api, claim, machine)
		})
	}
}

// A user of the management cluster can write the link of a NodeClaim on any Machine.
func TestDeleteLeavesMachinesOfOtherOwners(t *testing.T) {
	claim := launched("claim", "small")
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "control-plane", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
		Labels:          map[string]string{clusterv1.ClusterNameLabel: "served", v1alpha1.NodeClaimUIDLabel: string(claim.UID), v1alpha1.TemplateLabel: "general"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "controlplane.cluster.x-k8s.io/v1beta2", Kind: "KubeadmControlPlane", Name: "served", UID: "k", Controller: new(true)}},
	}}
	machine.Spec.ClusterName, machine.Status.NodeRef.Name = "served", "node"
	served := types.NamespacedName{Namespace: "fleet", Name: "served"}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served.Namespace, Name: served.Name}}
	api := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(machine, cluster).
		WithIndex(&clusterv1.Machine{}, clients.MachineClaimField, func(o client.Object) []string { return []string{o.GetLabels()[v1alpha1.NodeClaimUIDLabel]} }).Build()
	both := fixture.Cluster{Client: api}
	provider := New(&clients.Clusters{Cluster: served, Workload: both, Management: both}, nil, clock.RealClock{})
	leavesAlone(t, provider, api, claim, machine)
}

// leavesAlone checks that a claim has no Machine for Delete, and that it does not write a Machine of others.
func leavesAlone(t *testing.T, provider *CloudProvider, api client.Client, claim *karpv1.NodeClaim, machine *clusterv1.Machine) {
	t.Helper()
	if err := provider.Delete(t.Context(), claim); !cloudprovider.IsNodeClaimNotFoundError(err) {
		t.Errorf("got %v, want that the claim has no Machine", err)
	}
	after := &clusterv1.Machine{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(machine), after); err != nil {
		t.Fatal(err)
	}
	if after.ResourceVersion != "999" {
		t.Errorf("the Machine was written: %+v", after.ObjectMeta)
	}
}

// A Machine that this process has marked is removed wherever clusterctl moves it, so its absence is enough.
func TestDeleteAfterAMove(t *testing.T) {
	for name, marked := range map[string]bool{"this process has marked the Machine": true, "the Machine was moved before": false} {
		t.Run(name, func(t *testing.T) {
			claim := launched("claim", "small")
			machine := machineOf("m", claim.UID, hasNode)
			machine.Finalizers = nil
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			provider, c := newDrainProvider(machine, cluster)
			if marked {
				if err := provider.Delete(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
			}
			for _, moved := range []client.Object{machine, cluster} {
				if err := c.Delete(t.Context(), moved); err != nil {
					t.Fatal(err)
				}
			}
			if err := provider.Delete(t.Context(), claim); err == nil || cloudprovider.IsNodeClaimNotFoundError(err) != marked {
				t.Errorf("got %v, want that the claim ends: %t", err, marked)
			}
		})
	}
}

// A claim ends only when all of its Machines were unlinked, and the error of a write is not lost.
func TestDeleteOfAClaimWithTwoMachines(t *testing.T) {
	claim := fixture.Claim(time.Hour)
	claim.Spec.NodeClassRef = nodeClassRef
	claim.StatusConditions().SetUnknown(karpv1.ConditionTypeRegistered)
	claim.Status.Conditions[0].LastTransitionTime = metav1.NewTime(fixture.Noon.Add(-5 * time.Minute))
	claim.Status.ProviderID = planner.ProvisionalID(claim.UID)
	claim.Finalizers, claim.DeletionTimestamp = []string{karpv1.TerminationFinalizer}, new(metav1.NewTime(fixture.Noon))
	boots := func(m *clusterv1.Machine) {
		m.CreationTimestamp = metav1.NewTime(fixture.Noon.Add(-5 * time.Minute))
		fixture.WithCondition(m, clusterv1.MachineBootstrapConfigReadyCondition, metav1.ConditionTrue, "Ready", "", m.CreationTimestamp.Time)
	}
	for name, tc := range map[string]struct {
		machines []client.Object
		broken   bool // whether writes of Machines fail
		ends     bool
	}{
		"one boots":                        {machines: []client.Object{machineOf("b", claim.UID, boots)}, ends: true},
		"the first ends, the second boots": {machines: []client.Object{machineOf("a", claim.UID, hasNode), machineOf("b", claim.UID, boots)}},
		"it cannot be marked":              {machines: []client.Object{machineOf("a", claim.UID, hasNode)}, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
			template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
			provider, c := newDrainProvider(append(tc.machines, claim.DeepCopy(), cluster, template)...)
			failed := errors.New("etcdserver: request timed out")
			both := fixture.Cluster{Client: interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					if tc.broken {
						return failed
					}
					return c.Patch(ctx, object, patch, options...)
				},
			})}
			provider.clusters.Workload, provider.clusters.Management = both, both
			err := provider.Delete(t.Context(), claim)
			if cloudprovider.IsNodeClaimNotFoundError(err) != tc.ends || errors.Is(err, failed) != tc.broken || !tc.ends && !tc.broken && err != nil {
				t.Errorf("got %v, want that the claim ends: %t", err, tc.ends)
			}
		})
	}
}
