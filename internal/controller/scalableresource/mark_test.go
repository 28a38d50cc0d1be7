// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// The second Machine of a claim still serves the claim, unless the API server has the first one:
// the same Machine, and not another one of the same name.
func TestServesAfterAll(t *testing.T) {
	first := func(uid types.UID) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: "first", UID: uid, Labels: map[string]string{v1alpha1.NodeClaimUIDLabel: "c"},
		}}
	}
	for name, tc := range map[string]struct {
		uid  types.UID
		node string // of the claim
		want bool
	}{
		"the first serves the claim":                                    {uid: "1", want: false},
		"another one of its name, with its claim":                       {uid: "2", want: true},
		"the first is linked, and the second has the Node of the claim": {uid: "1", node: "node", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
				Name: "claim", UID: "c", Annotations: map[string]string{v1alpha1.ScalableResourceAnnotation: "general"},
			}}
			claim.Status.ProviderID, claim.Status.NodeName = "real://second", tc.node
			second := first("s")
			second.Spec.ProviderID, second.Status.NodeRef.Name = "real://other", "node"
			second.Name, second.Annotations = "second", map[string]string{v1alpha1.NodeClaimAnnotation: claim.Name}
			both := fixture.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(claim, second, first(tc.uid)).Build()}
			r := &Reconciler{clusters: &clients.Clusters{Workload: both, Management: both}}
			snap := &decided{Snapshot: &snapshot.Snapshot{Name: "general", Machines: map[string]*clusterv1.Machine{"first": first("1"), "second": second}}, Plan: planner.Plan{Served: map[types.UID]string{"c": "first"}}}
			got, err := r.stillServes(t.Context(), snap, second)
			if err != nil || got != tc.want {
				t.Errorf("got %t and %v, want %t", got, err, tc.want)
			}
		})
	}
}

// The time from which a Machine with a Node is spare is written, once. One without a Node is spare since it was created or unlinked.
func TestWithoutSpareTime(t *testing.T) {
	machine := func(node string, annotations map[string]string) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		m.Status.NodeRef.Name = node
		return m
	}
	since := map[string]string{v1alpha1.SpareSinceAnnotation: "2026-01-01T12:00:00Z"}
	snap := &decided{Snapshot: &snapshot.Snapshot{Machines: map[string]*clusterv1.Machine{
		"booting": machine("", nil), "new": machine("n1", nil), "known": machine("n2", since), "empty": machine("n3", map[string]string{v1alpha1.SpareSinceAnnotation: ""}), "serves": machine("n4", nil),
	}}}
	snap.Plan.Spares = []string{"booting", "new", "known", "empty"}
	if diff := cmp.Diff([]string{"new", "empty"}, withoutSpareTime(snap)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A Machine that serves no claim is marked or unlinked as the plan says, after the API server has confirmed that
// its claim does not exist. Cluster API drains a marked Machine that has a Node.
func TestMarkAndUnlink(t *testing.T) {
	type state struct{ Marked, Undrained, Linked, Spare bool }
	for name, tc := range map[string]struct {
		plan                planner.Plan
		node, fail, changed bool
		want                state
		wantEvents          int
	}{
		"marked without a Node":              {plan: planner.Plan{Marks: []string{"m"}}, want: state{Marked: true, Undrained: true, Linked: true}},
		"marked with a Node":                 {plan: planner.Plan{Marks: []string{"m"}}, node: true, want: state{Marked: true, Linked: true}},
		"unlinked":                           {plan: planner.Plan{Unlinks: []string{"m"}}, want: state{Spare: true}},
		"a spare one with a Node":            {plan: planner.Plan{Spares: []string{"m"}}, node: true, want: state{Spare: true}},
		"a spare one, and linked since":      {plan: planner.Plan{Spares: []string{"m"}}, node: true, changed: true, want: state{Linked: true}},
		"a surplus one of an adopted kind":   {plan: planner.Plan{Marks: []string{"m"}, Spares: []string{"m"}}, want: state{Marked: true, Undrained: true}, wantEvents: 1},
		"marked, and no answer":              {plan: planner.Plan{Marks: []string{"m"}}, fail: true, want: state{Linked: true}},
		"unlinked, and no answer":            {plan: planner.Plan{Unlinks: []string{"m"}}, fail: true, want: state{Linked: true}},
		"marked, and linked to another":      {plan: planner.Plan{Marks: []string{"m"}}, changed: true, want: state{Linked: true}},
		"unlinked, and it has a Node by now": {plan: planner.Plan{Unlinks: []string{"m"}}, changed: true, want: state{Linked: true}},
	} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
			machine.Finalizers = []string{clusterv1.MachineFinalizer}
			if tc.plan.Spares == nil {
				machine.Labels[v1alpha1.NodeClaimUIDLabel], machine.Annotations = "c", map[string]string{v1alpha1.NodeClaimAnnotation: "c"}
			}
			if tc.node {
				machine.Status.NodeRef.Name = "n"
			}
			clusters := fixture.Clusters(machine)
			management := clusters.Management.GetClient()
			read := &clusterv1.Machine{}
			if err := management.Get(t.Context(), client.ObjectKeyFromObject(machine), read); err != nil {
				t.Fatal(err)
			}
			if tc.changed {
				other := read.DeepCopy()
				if other.Status.NodeRef.Name = "n"; tc.plan.Unlinks == nil {
					other.Labels[v1alpha1.NodeClaimUIDLabel] = "other"
				}
				if err := management.Update(t.Context(), other); err != nil {
					t.Fatal(err)
				}
			}
			clusters.Workload = fixture.Cluster{Client: clusters.Workload.GetClient(), Live: interceptor.NewClient(
				clusters.Workload.GetClient().(client.WithWatch), interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
						if tc.fail {
							return errors.New("no answer")
						}
						return c.Get(ctx, key, object, options...)
					},
				})}
			adopted := withReplicas(1)
			adopted.Annotations = map[string]string{v1alpha1.AdoptedAnnotation: "2026-01-01T12:00:00Z"}
			told := &published{}
			snap := &decided{Snapshot: &snapshot.Snapshot{Name: "general", Resource: scalable.New(adopted), Machines: map[string]*clusterv1.Machine{"m": read}, State: planner.State{Now: fixture.Noon}}, Plan: tc.plan}
			if err := (&Reconciler{clusters: clusters, recorder: told}).markAndUnlink(t.Context(), snap); (err != nil) != (tc.fail || tc.changed) {
				t.Errorf("got %v", err)
			}
			if err := management.Get(t.Context(), client.ObjectKeyFromObject(machine), machine); err != nil {
				t.Fatal(err)
			}
			_, undrained := machine.Annotations[clusterv1.ExcludeNodeDrainingAnnotation]
			got := state{Marked: lifecycle.IsMarked(machine), Undrained: undrained, Linked: lifecycle.ClaimUID(machine) != "", Spare: lifecycle.HasSpareTime(machine)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(*told) != tc.wantEvents {
				t.Errorf("got %d events, want %d", len(*told), tc.wantEvents)
			}
		})
	}
}
