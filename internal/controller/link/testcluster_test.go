// SPDX-License-Identifier: Apache-2.0

package link

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

const resourceName = "general-small"

// claim returns a NodeClaim that waits for a Machine. Its UID is its name.
func claim(name string, change ...func(*karpv1.NodeClaim)) *karpv1.NodeClaim {
	claim := fixture.Claim(time.Minute)
	claim.Name, claim.UID = name, types.UID(name)
	for _, f := range change {
		f(claim)
	}
	return claim
}

// machine returns a Machine of the resource. Its UID is its name.
func machine(name string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	machine := fixture.Machine(30 * time.Second)
	machine.Namespace, machine.Name, machine.UID = fixture.Served.Namespace, name, types.UID(name)
	machine.Labels = map[string]string{clusterv1.ClusterNameLabel: fixture.Served.Name, clusterv1.MachineDeploymentNameLabel: resourceName}
	for _, f := range change {
		f(machine)
	}
	return machine
}

func linkedTo(claim string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Labels[v1alpha1.NodeClaimUIDLabel] = claim }
}

// newAPI returns an API server with the Cluster and the objects.
func newAPI(objects ...client.Object) client.WithWatch {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(cluster).WithObjects(objects...).WithStatusSubresource(&karpv1.NodeClaim{}).Build()
}

// newReconciler returns the reconciler of a process whose caches and live reads are those of an API server, with the
// answers of others.
func newReconciler(api client.WithWatch, cached, live interceptor.Funcs) *Reconciler {
	both := fixture.Cluster{Client: interceptor.NewClient(api, cached), Live: interceptor.NewClient(api, live)}
	return NewReconciler(&clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, &published{})
}

// published are the events that were published.
type published []events.Event

func (p *published) Publish(all ...events.Event) { *p = append(*p, all...) }

// claimOf returns the claim that a Machine is linked to.
func claimOf(t *testing.T, api client.Client, name string) types.UID {
	t.Helper()
	found := &clusterv1.Machine{}
	if err := api.Get(t.Context(), types.NamespacedName{Namespace: fixture.Served.Namespace, Name: name}, found); err != nil {
		t.Fatal(err)
	}
	return types.UID(found.Labels[v1alpha1.NodeClaimUIDLabel])
}
