// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/internal/link"
	"github.com/karpenter-capi/karpenter-capi/internal/operator"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
)

// clientOnly is a cluster of which only the client is used.
type clientOnly struct {
	cluster.Cluster
	client client.Client
}

func (c clientOnly) GetClient() client.Client    { return c.client }
func (c clientOnly) GetAPIReader() client.Reader { return c.client }

// A Machine that comes late and is the first by name is not given to a claim whose
// link to another one was written and is not in the cache yet.
func TestNoSecondLinkFromACacheThatIsBehind(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypes(schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}, &karpv1.NodeClaim{}, &karpv1.NodeClaimList{})
	machine := func(name string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}}
	}
	first, late := machine("m2"), machine("m1")
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}
	first.UID, late.UID = "2", "1"
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(first, late, claim).Build()
	read := func(m *clusterv1.Machine) *clusterv1.Machine {
		fresh := &clusterv1.Machine{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), fresh); err != nil {
			t.Fatal(err)
		}
		return fresh
	}
	r := &Reconciler{clusters: &operator.Clusters{Management: clientOnly{client: c}, Workload: clientOnly{client: c}}}
	observe := func(machines ...*clusterv1.Machine) *scalable.Observed {
		observed := &scalable.Observed{Name: "resource", Machines: map[string]*clusterv1.Machine{}}
		state := link.State{Claims: []link.Claim{{UID: "a", Name: "a", Created: time.Unix(1, 0), NeedsMachine: true}}}
		for _, m := range machines {
			observed.Machines[m.Name] = m
			state.Machines = append(state.Machines, link.Machine{Name: m.Name, Claim: scalable.ClaimUID(m)})
		}
		observed.Plan = link.Decide(state)
		return observed
	}

	stale := read(first)
	if current, err := r.link(t.Context(), observe(stale)); err != nil || !current {
		t.Fatalf("the first link: got %t, %v", current, err)
	}
	if current, err := r.link(t.Context(), observe(stale, read(late))); err != nil || current {
		t.Errorf("with a cache that is behind: got %t, %v, want that it is noticed", current, err)
	}
	if uid := scalable.ClaimUID(read(late)); uid != "" {
		t.Errorf("Machine m1 is linked to claim %s, which has m2", uid)
	}
	if current, err := r.link(t.Context(), observe(read(first), read(late))); err != nil || !current {
		t.Errorf("with a cache that has caught up: got %t, %v", current, err)
	}
}

// A claim that is going is not linked, whatever the cache says: it may be gone before.
func TestNoLinkToAClaimThatIsGoing(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypes(schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}, &karpv1.NodeClaim{}, &karpv1.NodeClaimList{})
	for name, live := range map[string]*karpv1.NodeClaim{
		"is being deleted":              {ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", Finalizers: []string{"f"}, DeletionTimestamp: new(metav1.Now())}},
		"is another one of that name":   {ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "b"}},
		"has another name, it was gone": {ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m", UID: "m"}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine, live).Build()
			r := &Reconciler{clusters: &operator.Clusters{Management: clientOnly{client: c}, Workload: clientOnly{client: c}}}
			linked, err := r.linkOne(t.Context(), &scalable.Observed{}, machine, link.Claim{UID: "a", Name: "a"})
			if err != nil || linked != nil {
				t.Errorf("got %v, %v, want no link", linked, err)
			}
		})
	}
}
