// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// The hook of a Machine that a user deletes blocks it until Karpenter has drained its Node. This package
// does nothing with Machines that are deleted with their Cluster: package clusterdeletion removes their
// hooks, and a mark would add one.
func TestDeletionWithCluster(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		ending, deleted, marked, lowered bool
		// The claim has not registered, exists only in the API server, or does not exist.
		unregistered, hidden, none bool
		free                       bool          // no hook blocks the Machine
		id, node                   string        // of the Machine; those of its claim if empty
		ago                        time.Duration // since the Machine was deleted
		// After the reconcile.
		wantMarked, wantHeld, wantDeleted bool
	}{
		"deleted by hand": {deleted: true, wantHeld: true, wantDeleted: true},
		"deleted by hand, and the provider has changed its ID":   {deleted: true, id: "real://other", wantHeld: true, wantDeleted: true},
		"deleted by hand, and its drain takes long":              {deleted: true, ago: time.Hour, wantHeld: true, wantDeleted: true},
		"deleted by hand before its Node registers":              {deleted: true, unregistered: true, wantMarked: true, wantHeld: true, wantDeleted: true},
		"deleted by hand, and its claim has another Machine":     {deleted: true, id: "real://other", node: "other", wantMarked: true, wantHeld: true, wantDeleted: true},
		"deleted by hand, and its claim no longer exists":        {deleted: true, none: true, ago: time.Hour, wantMarked: true, wantHeld: true, wantDeleted: true},
		"deleted by hand, and its hooks were removed":            {deleted: true, none: true, free: true, wantDeleted: true},
		"deleted by hand, and the cache lacks its claim":         {deleted: true, hidden: true, wantHeld: true, wantDeleted: true},
		"deleted with its Cluster":                               {deleted: true, ending: true, wantHeld: true, wantDeleted: true},
		"deleted with its Cluster, and its claim does not exist": {deleted: true, ending: true, none: true, wantHeld: true, wantDeleted: true},
		"marked before that":                                     {ending: true, marked: true, wantMarked: true, wantHeld: true},
		"marked before that, and replicas are lowered":           {ending: true, marked: true, lowered: true, wantMarked: true, wantDeleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: "fleet", Name: "m", UID: "m", Finalizers: []string{clusterv1.MachineFinalizer},
				Labels:      map[string]string{v1alpha1.NodeClaimUIDLabel: "c", clusterv1.MachinePoolNameLabel: "pool"},
				Annotations: map[string]string{v1alpha1.TerminateHookAnnotation: "", v1alpha1.DrainHookAnnotation: ""},
			}}
			if tc.free {
				machine.Annotations = map[string]string{}
			}
			machine.Annotations[v1alpha1.NodeClaimAnnotation] = "c"
			claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c", Annotations: map[string]string{v1alpha1.ScalableResourceAnnotation: "pool"}}}
			claim.Status.ProviderID, claim.Status.NodeName = "real://m", "n"
			if !tc.unregistered {
				claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
			}
			machine.Spec.ProviderID, machine.Status.NodeRef.Name = cmp.Or(tc.id, "real://m"), cmp.Or(tc.node, "n")
			if tc.marked {
				machine.Annotations[v1alpha1.MarkedForDeletionAtAnnotation] = now.Format(time.RFC3339)
			}
			if tc.deleted {
				machine.DeletionTimestamp = new(metav1.NewTime(now.Add(-tc.ago)))
			}
			management := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(machine).Build()
			workload := fake.NewClientBuilder().WithScheme(scheme.Scheme)
			if !tc.none {
				workload = workload.WithObjects(claim)
			}
			r := &Reconciler{clusters: &clients.Clusters{Workload: fixture.Cluster{Client: workload.Build()}, Management: fixture.Cluster{Client: management}}}
			read := &clusterv1.Machine{}
			if err := management.Get(t.Context(), client.ObjectKeyFromObject(machine), read); err != nil {
				t.Fatal(err)
			}
			snap := &decided{Snapshot: &snapshot.Snapshot{Name: "pool", Machines: map[string]*clusterv1.Machine{"m": read}, State: planner.State{Now: now, ClusterDeleting: tc.ending}}}
			if !tc.none && !tc.hidden {
				snap.Claims = []karpv1.NodeClaim{*claim}
			}
			if tc.lowered {
				snap.Plan.Deletable = []string{"m"}
			}
			if _, err := r.deleteMarked(t.Context(), snap); err != nil {
				t.Fatal(err)
			}
			after := &clusterv1.Machine{}
			if err := management.Get(t.Context(), client.ObjectKeyFromObject(machine), after); err != nil {
				t.Fatal(err)
			}
			held, marked, deleted := lifecycle.WaitsForHook(after), lifecycle.IsMarked(after), !after.DeletionTimestamp.IsZero()
			if held != tc.wantHeld || marked != tc.wantMarked || deleted != tc.wantDeleted {
				t.Errorf("blocked by a hook: %t, want %t; marked: %t, want %t; deleted: %t, want %t", held, tc.wantHeld, marked, tc.wantMarked, deleted, tc.wantDeleted)
			}
		})
	}
}

// With several marked Machines, the next reconcile is due when the first has waited for
// loweringTimeout.
func TestDeletionRequeuesAtTheSoonestDeadline(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	marked := func(name string, ago time.Duration) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: name, UID: types.UID(name),
			Annotations: map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: timestamp.Format(now.Add(-ago))},
		}}
	}
	for name, tc := range map[string]struct {
		machines []*clusterv1.Machine
		want     time.Duration
	}{
		"none":                            {},
		"one":                             {machines: []*clusterv1.Machine{marked("a", time.Minute)}, want: loweringTimeout - time.Minute},
		"two":                             {machines: []*clusterv1.Machine{marked("a", time.Second), marked("b", time.Minute)}, want: loweringTimeout - time.Minute},
		"two, and the first is due first": {machines: []*clusterv1.Machine{marked("a", time.Minute), marked("b", time.Second)}, want: loweringTimeout - time.Minute},
		"three, and one has waited for loweringTimeout": {
			machines: []*clusterv1.Machine{marked("a", time.Minute), marked("b", 2*time.Minute), marked("c", loweringTimeout)},
			want:     loweringTimeout - 2*time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := lo.Map(tc.machines, func(m *clusterv1.Machine, _ int) client.Object { return m.DeepCopy() })
			management := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
			r := &Reconciler{clusters: &clients.Clusters{Management: fixture.Cluster{Client: management}}}
			snap := &decided{Snapshot: &snapshot.Snapshot{Machines: lo.KeyBy(tc.machines, func(m *clusterv1.Machine) string { return m.Name }), State: planner.State{Now: now}}}
			again, err := r.deleteMarked(t.Context(), snap)
			if err != nil || again != tc.want {
				t.Errorf("the next reconcile is due in %s, want %s; error: %v", again, tc.want, err)
			}
		})
	}
}

// A Machine is deleted only if none of the MachineSets of deletable Machines was scaled since the plan was made. Other MachineSets
// do not matter.
func TestAreSetsCurrent(t *testing.T) {
	ofSet := func(name, set string) *clusterv1.Machine {
		machine := fixture.OwnedBy(name, set)
		machine.Labels = map[string]string{}
		if set != "" {
			machine.Labels[clusterv1.MachineSetNameLabel] = set
		}
		return machine
	}
	machines := map[string]*clusterv1.Machine{"a1": ofSet("a1", "a"), "a2": ofSet("a2", "a"), "b1": ofSet("b1", "b"), "pool": ofSet("pool", ""), "x": ofSet("x", "deleted")}
	for name, tc := range map[string]struct {
		deletable []string
		raised    string // the MachineSet that has more replicas in the API server
		reads     int
		want      bool
		wantError bool
	}{
		"nothing is deletable":                          {raised: "a", want: true},
		"its MachineSet is the same":                    {deletable: []string{"a1"}, reads: 1, want: true},
		"its MachineSet was raised":                     {deletable: []string{"a1"}, raised: "a", reads: 1},
		"another MachineSet was raised":                 {deletable: []string{"a1"}, raised: "b", reads: 1, want: true},
		"each MachineSet is read once":                  {deletable: []string{"a1", "b1", "a2"}, reads: 2, want: true},
		"the second MachineSet was raised":              {deletable: []string{"a1", "b1"}, raised: "b", reads: 2},
		"it has no MachineSet":                          {deletable: []string{"pool"}, want: true},
		"its MachineSet no longer exists":               {deletable: []string{"x"}, reads: 1, want: true},
		"its MachineSet was raised, and another exists": {deletable: []string{"x", "a1"}, raised: "a", reads: 1},
		"the API server does not answer":                {deletable: []string{"a1"}, reads: 1, wantError: true},
	} {
		t.Run(name, func(t *testing.T) {
			cached, live := []client.Object{}, []client.Object{}
			for _, name := range []string{"a", "b"} {
				cached = append(cached, fixture.MachineSet(name, "general", 1))
				live = append(live, fixture.MachineSet(name, "general", lo.Ternary(name == tc.raised, int32(2), 1)))
			}
			reads := 0
			clusters := fixture.Clusters(cached...)
			clusters.Management = fixture.Cluster{Client: clusters.Management.GetClient(), Live: interceptor.NewClient(
				fixture.Clusters(live...).Management.GetClient().(client.WithWatch), interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
						reads++
						if tc.wantError {
							return errors.New("no answer")
						}
						return c.Get(ctx, key, object, options...)
					},
				})}
			snap := &decided{Snapshot: &snapshot.Snapshot{Machines: machines}}
			snap.Plan.Deletable = tc.deletable
			got, err := (&Reconciler{clusters: clusters}).areSetsCurrent(t.Context(), snap)
			if got != tc.want || (err != nil) != tc.wantError || reads != tc.reads {
				t.Errorf("got %t and %v after %d reads, want %t after %d", got, err, reads, tc.want, tc.reads)
			}
		})
	}
}

// A Machine of a pool that was not settled waits for loweringTimeout from then on.
func TestUnsettledPoolKeepsItsMachines(t *testing.T) {
	machine := fixture.OfPool(fixture.Machine(time.Hour))
	machine.Annotations = map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: timestamp.Format(fixture.Noon)}
	r := &Reconciler{clusters: fixture.Clusters(machine)}
	for _, moment := range []struct {
		at        time.Duration // since the Machine was marked
		unsettled bool
		want      time.Duration
	}{
		{at: loweringTimeout - time.Second, unsettled: true, want: loweringTimeout},
		{at: loweringTimeout + time.Second, want: loweringTimeout - 2*time.Second},
	} {
		snap := &decided{Snapshot: &snapshot.Snapshot{Name: "pool", Machines: map[string]*clusterv1.Machine{"m": machine}, State: planner.State{Now: fixture.Noon.Add(moment.at), Scaling: planner.Pool{SettlesAt: lo.Ternary(moment.unsettled, fixture.Noon.Add(24*time.Hour), time.Time{})}}}}
		if again, err := r.deleteMarked(t.Context(), snap); err != nil || again != moment.want {
			t.Errorf("after %s: the Machine waits for %s (%v), want %s", moment.at, again, err, moment.want)
		}
	}
}
