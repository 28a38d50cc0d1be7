// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/scalable"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A claim of an unusable pool fails at once, with the reason.
func TestFailureOfUnusablePool(t *testing.T) {
	state := stateFrom(t, []*karpv1.NodeClaim{fixture.Claim(time.Second)})
	state.Unusable = "no Machines"
	want := planner.Outcome{Failure: failure.Failure{Kind: planner.ResourceUnusable, Message: "no Machines"}}
	if diff := cmp.Diff(want, planner.Decide(state).Outcomes["c"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadPool(t *testing.T) {
	const makesMachines = `{infrastructureMachineKind: AzureMachinePoolMachine}`
	ago := func(seconds int) map[string]string {
		return map[string]string{v1alpha1.ReplicasSetAtAnnotation: timestamp.Format(fixture.Noon.Add(-time.Duration(seconds) * time.Second))}
	}
	created, setAt := fixture.Noon.Add(-time.Hour), func(seconds int) time.Time { return fixture.Noon.Add(-time.Duration(seconds) * time.Second) }
	for name, tc := range map[string]struct {
		pool    *scalable.Resource
		status  string // of the infrastructure; empty if none exists
		claims  int
		want    planner.Pool
		problem string
		stall   string // a part of its message
		dueIn   time.Duration
	}{
		"no pool yet":           {claims: 1, want: planner.Pool{Unready: true, Ends: true}, stall: "exists yet"},
		"no infrastructure yet": {pool: scalable.New(fixture.MachinePool(nil)), want: planner.Pool{Unready: true, ReplicasSetAt: created}, problem: ": its infrastructure object does not exist", stall: "the infrastructure object of MachinePool clusters/pool does not exist"},
		"an infrastructure that creates no Machines yet": {pool: scalable.New(fixture.MachinePool(nil)), status: `{}`, want: planner.Pool{Unready: true, ReplicasSetAt: created}, stall: "the infrastructure provider has not acted"},
		"and a claim that waits for it":                  {pool: scalable.New(fixture.MachinePool(nil)), status: `{}`, claims: 1, want: planner.Pool{Unready: true, ReplicasSetAt: created}, stall: "the infrastructure provider has not acted", dueIn: 5 * time.Second},
		"an infrastructure that creates Machines":        {pool: scalable.New(fixture.MachinePool(nil)), status: makesMachines, claims: 1, want: planner.Pool{ReplicasSetAt: created}},
		"replicas that were set now":                     {pool: scalable.New(fixture.MachinePool(ago(0))), status: makesMachines, want: planner.Pool{ReplicasSetAt: setAt(0)}, dueIn: 10 * time.Second},
		"replicas that were set 9 seconds ago":           {pool: scalable.New(fixture.MachinePool(ago(9))), status: makesMachines, want: planner.Pool{ReplicasSetAt: setAt(9)}, dueIn: time.Second},
		"replicas that were set 10 seconds ago":          {pool: scalable.New(fixture.MachinePool(ago(10))), status: makesMachines, want: planner.Pool{ReplicasSetAt: setAt(10)}},
		"an infrastructure that reports a problem": {pool: scalable.New(fixture.MachinePool(nil)), status: `{conditions: [{type: Other, status: "False", reason: No, message: no}, {type: Ready, status: "False", reason: ScaleSetProvisionFailed, message: no quota}]}`,
			want: planner.Pool{Unready: true, ReplicasSetAt: created}, problem: ": ScaleSetProvisionFailed: no quota"},
		"an infrastructure that is ready": {pool: scalable.New(fixture.MachinePool(nil)), status: `{infrastructureMachineKind: x, conditions: [{type: Ready, status: "True", reason: Yes}]}`, want: planner.Pool{ReplicasSetAt: created}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.status != "" {
				objects = append(objects, fixture.PoolInfrastructure(t, tc.status))
			}
			claims := make([]*karpv1.NodeClaim, tc.claims)
			for i := range claims {
				claims[i] = &karpv1.NodeClaim{}
			}
			snap := snapshotOf(t, tc.pool, claims)
			if err := snap.readPool(t.Context(), fixture.Clusters(objects...)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(planner.Scaling(tc.want), snap.State.Scaling); diff != "" {
				t.Errorf("scaling (-want +got):\n%s", diff)
			}
			if stall := snap.State.Stall; (stall != planner.Stall{}) != (tc.stall != "") || !strings.Contains(stall.Message, tc.stall) || snap.Ending {
				t.Errorf("stall: got %+v, want %q; ending: %t", stall, tc.stall, snap.Ending)
			}
			if snap.State.Problem != tc.problem {
				t.Errorf("problem: got %q, want %q", snap.State.Problem, tc.problem)
			}
			if got := planner.Decide(&snap.State).Due.In; got != tc.dueIn {
				t.Errorf("due in %s, want %s", got, tc.dueIn)
			}
		})
	}
}

// The planner gets, of a leaving Machine of a pool, since when it leaves, and whether its instance is being deleted or no
// longer exists.
func TestReadLeavingMachinesOfPool(t *testing.T) {
	chosen := func(machine *clusterv1.Machine, age time.Duration) *clusterv1.Machine {
		machine.Annotations = map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: timestamp.Format(fixture.Noon.Add(-age)), v1alpha1.TerminateHookAnnotation: ""}
		return machine
	}
	deleted := func(machine *clusterv1.Machine, age time.Duration) *clusterv1.Machine {
		machine.DeletionTimestamp = new(metav1.NewTime(fixture.Noon.Add(-age)))
		return machine
	}
	node := func(machine *clusterv1.Machine) *clusterv1.Machine {
		machine.Spec.ProviderID, machine.Status.NodeRef = "azure:///m", clusterv1.MachineNodeReference{Name: "n"}
		return machine
	}
	unknown := node(fixture.Machine(time.Minute))
	unknown.Spec.ProviderID = ""
	hasID := fixture.Machine(time.Minute)
	hasID.Spec.ProviderID = "azure:///m"
	going := fixture.Instance()
	going.SetFinalizers([]string{"x"})
	going.SetDeletionTimestamp(new(metav1.NewTime(fixture.Noon)))
	listed := []string{"azure:///other", "azure:///m"}
	type facts struct {
		Leaving, Marked, Hooked, HasNode, InstanceGone bool
		LeavingSince                                   time.Time
	}
	since := func(ago time.Duration) time.Time { return fixture.Noon.Add(-ago) }
	for name, tc := range map[string]struct {
		machine  *clusterv1.Machine
		instance *unstructured.Unstructured
		listed   []string // provider IDs in the spec of the pool
		want     facts
		unseen   bool // the provider may not have seen that it is marked
		dueIn    time.Duration
	}{
		"a live one": {machine: fixture.Machine(time.Minute), instance: fixture.Instance(), dueIn: time.Minute},
		"a live one that has lost its instance": {machine: fixture.Machine(time.Minute),
			want: facts{InstanceGone: true}, dueIn: time.Minute},
		"a live Node that has lost its instance": {machine: node(fixture.Machine(time.Minute)),
			want: facts{HasNode: true}, dueIn: time.Minute},
		"marked now": {machine: chosen(fixture.Machine(time.Minute), 0), instance: fixture.Instance(),
			want: facts{Leaving: true, Marked: true, Hooked: true, LeavingSince: since(0)}, unseen: true, dueIn: 10 * time.Second},
		"marked 9 seconds ago": {machine: chosen(fixture.Machine(time.Minute), 9*time.Second), instance: fixture.Instance(),
			want: facts{Leaving: true, Marked: true, Hooked: true, LeavingSince: since(9 * time.Second)}, unseen: true, dueIn: time.Second},
		"marked 10 seconds ago": {machine: chosen(fixture.Machine(time.Minute), 10*time.Second), instance: fixture.Instance(),
			want: facts{Leaving: true, Marked: true, Hooked: true, LeavingSince: since(10 * time.Second)}},
		"marked, not deleted, and without an instance": {machine: chosen(fixture.Machine(time.Minute), time.Minute),
			want: facts{Leaving: true, Marked: true, Hooked: true, InstanceGone: true, LeavingSince: since(time.Minute)}},
		"deleted by a user": {machine: deleted(fixture.Machine(time.Minute), 0), instance: fixture.Instance(),
			want: facts{Leaving: true, LeavingSince: since(0)}, dueIn: 10 * time.Second},
		"deleted by a user a minute ago": {machine: deleted(fixture.Machine(time.Hour), time.Minute), instance: fixture.Instance(),
			want: facts{Leaving: true, LeavingSince: since(time.Minute)}},
		"deleted, and its instance is being deleted": {machine: deleted(fixture.Machine(time.Minute), 0), instance: going,
			want: facts{Leaving: true, InstanceGone: true, LeavingSince: since(0)}, dueIn: 10 * time.Second},
		"deleted, and its instance no longer exists": {machine: deleted(fixture.Machine(time.Minute), 0),
			want: facts{Leaving: true, InstanceGone: true, LeavingSince: since(0)}, dueIn: 10 * time.Second},
		"deleted, a Node, and the provider lists it": {machine: deleted(node(fixture.Machine(time.Minute)), 0), instance: fixture.Instance(), listed: listed,
			want: facts{Leaving: true, HasNode: true, LeavingSince: since(0)}, dueIn: 10 * time.Second},
		"deleted, a Node, and the provider lists others": {machine: deleted(node(fixture.Machine(time.Minute)), 0), instance: fixture.Instance(), listed: listed[:1],
			want: facts{Leaving: true, HasNode: true, InstanceGone: true, LeavingSince: since(0)}, dueIn: 10 * time.Second},
		"deleted, booting, and the provider lists others": {machine: deleted(fixture.Machine(time.Minute), 0), instance: fixture.Instance(), listed: listed[:1],
			want: facts{Leaving: true, LeavingSince: since(0)}, dueIn: 10 * time.Second},
		"deleted, booting with an ID, and the provider lists others": {machine: deleted(hasID, 0), instance: fixture.Instance(), listed: listed[:1],
			want: facts{Leaving: true, LeavingSince: since(0)}, dueIn: 10 * time.Second},
		"deleted, a Node, and no provider ID yet": {machine: deleted(unknown, 0), instance: fixture.Instance(), listed: listed,
			want: facts{Leaving: true, HasNode: true, LeavingSince: since(0)}, dueIn: 10 * time.Second},
		"marked, a Node, and the provider lists others": {machine: chosen(node(fixture.Machine(time.Minute)), time.Minute), instance: fixture.Instance(), listed: listed[:1],
			want: facts{Leaving: true, Marked: true, Hooked: true, HasNode: true, LeavingSince: since(time.Minute)}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{fixture.PoolInfrastructure(t, `{infrastructureMachineKind: AzureMachinePoolMachine}`)}
			if tc.instance != nil {
				objects = append(objects, tc.instance)
			}
			machine, pool := fixture.OfPool(tc.machine), scalable.New(fixture.MachinePool(nil))
			pool.API().(*clusterv1.MachinePool).Spec.ProviderIDList = tc.listed
			snap := snapshotOf(t, pool, nil, machine)
			if err := snap.readPool(t.Context(), fixture.Clusters(objects...)); err != nil {
				t.Fatal(err)
			}
			read := snap.State.Machines[0]
			got := facts{
				Leaving: read.Leaving, Marked: read.Marked, Hooked: read.Hooked, HasNode: read.HasNode, InstanceGone: read.InstanceGone,
				LeavingSince: read.LeavingSince,
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			plan := planner.Decide(&snap.State)
			if lost := len(plan.Lost) > 0; lost != (tc.want.InstanceGone && !tc.want.Leaving) {
				t.Errorf("it is lost: %t", lost)
			}
			if why := plan.Reasons["Machine m"]; (why == planner.MarkNotSeen) != tc.unseen {
				t.Errorf("it stays because %q; the provider may not have seen the mark: %t", why, tc.unseen)
			}
			if got := plan.Due.In; got != tc.dueIn {
				t.Errorf("due in %s, want %s", got, tc.dueIn)
			}
		})
	}
}

// The cache can be behind: an instance that only the API server has is not lost. One that neither has is. What the cache
// has is not read again.
func TestInstanceThatTheCacheLacks(t *testing.T) {
	for name, tc := range map[string]struct {
		deleted bool // the Machine
		cached  []client.Object
		live    []client.Object
		want    bool
	}{
		"a booting Machine, and it is cached": {cached: []client.Object{fixture.Instance()}},
		"a deleted Machine, and it is cached": {deleted: true, cached: []client.Object{fixture.Instance()}},
		"a booting Machine, and it exists":    {live: []client.Object{fixture.Instance()}},
		"a booting Machine, and none exists":  {want: true},
		"a deleted Machine, and it exists":    {deleted: true, live: []client.Object{fixture.Instance()}},
		"a deleted Machine, and none exists":  {deleted: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.OfPool(fixture.Machine(time.Minute))
			if tc.deleted {
				machine.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
			}
			clusters := fixture.Clusters(append(tc.cached, fixture.PoolInfrastructure(t, `{infrastructureMachineKind: AzureMachinePoolMachine}`))...)
			clusters.Management = fixture.Cluster{Client: clusters.Management.GetClient(), Live: fixture.Clusters(tc.live...).Management.GetClient()}
			snap := snapshotOf(t, scalable.New(fixture.MachinePool(nil)), nil, machine)
			if err := snap.readPool(t.Context(), clusters); err != nil {
				t.Fatal(err)
			}
			if got := snap.State.Machines[0].InstanceGone; got != tc.want {
				t.Errorf("its instance no longer exists: %t, want %t", got, tc.want)
			}
		})
	}
}

// What nothing acts on does not fail: the controllers of Cluster API, or the provider, do not run.
func TestPoolStallOf(t *testing.T) {
	for name, tc := range map[string]struct {
		observed int64  // generation, of 2
		status   string // of the infrastructure; empty if none exists
		want     string // a part of the message; empty if it is not stalled
	}{
		"the provider acts":              {observed: 2, status: `{ready: false}`},
		"the provider has not acted":     {observed: 2, status: `{}`, want: "the infrastructure provider has not acted on AzureMachinePool pool of MachinePool clusters/pool"},
		"no infrastructure exists":       {observed: 2, want: "the infrastructure object of MachinePool clusters/pool does not exist"},
		"Cluster API has not acted":      {observed: 1, status: `{ready: false}`, want: "Cluster API has not acted on MachinePool clusters/pool"},
		"neither has acted on it so far": {observed: 1, status: `{}`, want: "Cluster API has not acted on MachinePool clusters/pool"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := fixture.MachinePool(nil)
			pool.Generation, pool.Status.ObservedGeneration = 2, tc.observed
			var infrastructure *unstructured.Unstructured
			if tc.status != "" {
				infrastructure = fixture.PoolInfrastructure(t, tc.status)
			}
			got := poolStallOf(pool, infrastructure)
			if stalls := got != (planner.Stall{}); stalls != (tc.want != "") || stalls && (!strings.Contains(got.Message, tc.want) || got.Reason != v1alpha1.ReasonNoProgress) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
			if silent := strings.Contains(tc.want, "has not acted"); got.Silent != silent {
				t.Errorf("only the missing action shows it: %t, want %t", got.Silent, silent)
			}
		})
	}
}

// A pool whose instances cannot be listed is reconciled like others: what is not known of an instance is not
// that it no longer exists.
func TestReadPoolWithoutRightToInstances(t *testing.T) {
	for name, deleted := range map[string]bool{"a booting Machine": false, "a Machine that a user has deleted": true} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.OfPool(fixture.Machine(time.Minute))
			if deleted {
				machine.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
			}
			clusters := fixture.Clusters(fixture.PoolInfrastructure(t, `{infrastructureMachineKind: AzureMachinePoolMachine}`))
			kind := fixture.Instance().GroupVersionKind()
			clusters.Management = fixture.Cluster{Client: interceptor.NewClient(clusters.Management.(fixture.Cluster).Client.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if object.GetObjectKind().GroupVersionKind().Kind == kind.Kind {
						return reference.Unlisted{Kind: kind.GroupKind()}
					}
					return c.Get(ctx, key, object, options...)
				},
			})}
			snap := snapshotOf(t, scalable.New(fixture.MachinePool(nil)), nil, machine)
			if err := snap.readPool(t.Context(), clusters); err != nil {
				t.Fatal(err)
			}
			if snap.State.Machines[0].InstanceGone {
				t.Error("an instance that cannot be read counts as one that no longer exists")
			}
		})
	}
}

// If the pool itself is being deleted, no Machine is replaced and no replicas are written, so marked
// Machines are deletable at once.
func TestReadMachinesOfDeletedPool(t *testing.T) {
	going := scalable.New(fixture.MachinePool(nil))
	going.SetDeletionTimestamp(new(metav1.NewTime(fixture.Noon)))
	infrastructure := fixture.PoolInfrastructure(t, `{infrastructureMachineKind: AzureMachinePoolMachine}`)
	infrastructure.SetFinalizers([]string{"x"})
	infrastructure.SetDeletionTimestamp(new(metav1.NewTime(fixture.Noon)))
	for name, tc := range map[string]struct {
		resource *scalable.Resource
		objects  []client.Object
		want     planner.Pool
	}{
		"being deleted":                    {resource: going, want: planner.Pool{Unready: true, Ends: true}},
		"no longer there":                  {want: planner.Pool{Unready: true, Ends: true}},
		"its infrastructure being deleted": {want: planner.Pool{Unready: true, ReplicasSetAt: fixture.Noon.Add(-time.Hour)}, resource: scalable.New(fixture.MachinePool(nil)), objects: []client.Object{infrastructure, fixture.Instance(), scalable.New(fixture.MachinePool(nil)).API()}},
	} {
		t.Run(name, func(t *testing.T) {
			leaving, live := fixture.OfPool(fixture.Machine(time.Minute)), fixture.OfPool(fixture.Machine(time.Minute))
			live.Name = "live"
			marked := leaving.DeepCopy()
			marked.Name = "marked"
			leaving.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
			leaving.Annotations = map[string]string{v1alpha1.MarkedForDeletionAtAnnotation: timestamp.Format(fixture.Noon), v1alpha1.TerminateHookAnnotation: ""}
			machines := []*clusterv1.Machine{leaving, live}
			if len(tc.objects) > 0 {
				// Its instance is deleted only after its Machine, because the Machine has the hook.
				marked.Annotations = leaving.Annotations
				machines = append(machines, marked)
			}
			snap := snapshotOf(t, tc.resource, nil, machines...)
			if err := snap.readPool(t.Context(), fixture.Clusters(tc.objects...)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"m"}, planner.Decide(&snap.State).Deletable); diff != "" {
				t.Errorf("deletable (-want +got):\n%s", diff)
			}
			if len(tc.objects) == 0 && lo.ContainsBy(snap.State.Machines, func(m planner.Machine) bool { return m.Name == "live" && m.InstanceGone }) {
				t.Error("the instance of a live Machine counts as lost")
			}
			if diff := cmp.Diff(planner.Scaling(tc.want), snap.State.Scaling); diff != "" {
				t.Errorf("scaling (-want +got):\n%s", diff)
			}
		})
	}
}
