// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/failure"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/snapshot"
)

// infrastructure sets the condition InfrastructureReady to False.
func infrastructure(reason string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		conditions.Set(m, metav1.Condition{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: "not yet"})
	}
}

// The end of a stall is written once: from then on launchTimeoutSeconds counts.
func TestStallEnds(t *testing.T) {
	stalled := func(reason string) func(*karpv1.NodeClaim) {
		return func(c *karpv1.NodeClaim) {
			c.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, reason, "nothing acts")
			for i := range c.Status.Conditions {
				c.Status.Conditions[i].LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
			}
		}
	}
	for name, tc := range map[string]struct {
		reason     string
		registered bool
		ends       bool // its Cluster is being deleted
		want       string
	}{
		"its Cluster ends":          {reason: v1alpha1.ReasonNoProgress, ends: true, want: v1alpha1.ReasonNoProgress},
		"nothing acted":             {reason: v1alpha1.ReasonNoProgress, want: v1alpha1.ReasonResumed},
		"it was blocked":            {reason: v1alpha1.ReasonBlocked, want: v1alpha1.ReasonResumed},
		"its Node registered since": {reason: v1alpha1.ReasonNoProgress, registered: true, want: v1alpha1.ReasonNoProgress},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(launched("c", stalled(tc.reason), func(c *karpv1.NodeClaim) {
				if c.Status.ProviderID = "real://m"; tc.registered {
					c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
				}
			}), machine("m", linkedTo("c"), withID("real://m"), infrastructure("NotReady")))
			if tc.ends {
				w.deleteCluster(t)
			}
			r, version := w.newProcess(), ""
			for range 2 { // the second reconcile writes nothing
				if err := reconcileOnce(t, r); err != nil {
					t.Fatal(err)
				}
				claim := w.claim(t, "c")
				if version != "" && version != claim.ResourceVersion {
					t.Error("it is written twice")
				}
				version = claim.ResourceVersion
			}
			condition := w.claim(t, "c").StatusConditions().Get(v1alpha1.ConditionMachineAvailable)
			if condition.Reason != tc.want || !condition.IsUnknown() {
				t.Errorf("got the condition %+v, want reason %s", condition, tc.want)
			}
			if counts := condition.LastTransitionTime.After(now.Add(-time.Minute)); counts != (tc.want == v1alpha1.ReasonResumed) {
				t.Errorf("launchTimeoutSeconds counts from %s", condition.LastTransitionTime)
			}
		})
	}
}

// What happens to the launch of a claim is reported on the claim and on the Pods that wait for it.
func TestWaitingPodsAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		machine []func(*clusterv1.Machine)
		marked  bool // the offering is marked as unavailable
		claim   int
		pods    int
	}{
		"Cluster API acts":     {machine: []func(*clusterv1.Machine){linkedTo("c"), infrastructure("NotReady")}},
		"nothing acts":         {machine: []func(*clusterv1.Machine){linkedTo("c"), func(m *clusterv1.Machine) { m.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute)) }}, claim: 1, pods: 2},
		"the Machine failed":   {machine: []func(*clusterv1.Machine){linkedTo("c"), infrastructure("InsufficientInstanceCapacity")}, marked: true, claim: 1, pods: 2},
		"its offering, before": {machine: []func(*clusterv1.Machine){linkedTo("c"), infrastructure("InsufficientInstanceCapacity")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(launched("c"), machine("m", tc.machine...))
			if tc.marked {
				w.setTemplate(t, func(template *v1alpha1.KarpenterMachineTemplate) {
					template.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{{
						InstanceType: "small", Zone: "a", CapacityType: karpv1.CapacityTypeOnDemand, Reason: "InsufficientCapacity", Failures: 1, Until: metav1.NewTime(now.Add(time.Minute)),
					}}
				})
			}
			r, told := w.newProcess(), &toldObjects{}
			r.recorder = told
			r.podsOf = func(claim string) []types.NamespacedName {
				if claim != "c" {
					return nil
				}
				return []types.NamespacedName{{Namespace: "default", Name: "p"}, {Namespace: "default", Name: "q"}}
			}
			if err := reconcileOnce(t, r); err != nil {
				t.Fatal(err)
			}
			want := map[string]int{"c": tc.claim, "p": tc.pods / 2, "q": tc.pods / 2}
			got := map[string]int{"c": 0, "p": 0, "q": 0}
			for _, name := range *told {
				if _, asked := got[name]; asked {
					got[name]++
				}
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// A claim that exceeds a limit is replaced, and its offering is not marked: it has not failed.
func TestClaimOverTheLimitIsReplaced(t *testing.T) {
	w := newWorld(launched("older", func(c *karpv1.NodeClaim) { c.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Minute)) }), launched("younger"),
		machine("first", infrastructure("NotReady")), machine("second", infrastructure("NotReady")))
	w.limit(t, func(template *v1alpha1.KarpenterMachineTemplate) { template.Spec.MaxMachines = new(int32(1)) })
	if err := reconcileOnce(t, w.newProcess()); err != nil {
		t.Fatal(err)
	}
	if older, younger := w.claim(t, "older").DeletionTimestamp, w.claim(t, "younger").DeletionTimestamp; older != nil || younger == nil {
		t.Errorf("deleted: the older claim %v, the younger one %v", older, younger)
	}
	if marks := w.marks(t); len(marks) > 0 {
		t.Errorf("got the marks %+v", marks)
	}
}

// Only a launch that lasts too long may have ended since: the API server decides. What a provider reports counts.
func TestOnlyATimeoutIsReadAgain(t *testing.T) {
	for kind, marked := range map[failure.Kind]bool{planner.LaunchTimeout: false, failure.InsufficientCapacity: true} {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(launched("c"), machine("m", linkedTo("c"), withID("real://m")))
			template := newTemplate()
			if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(template), template); err != nil {
				t.Fatal(err)
			}
			snap := &decided{Snapshot: &snapshot.Snapshot{Name: resourceName, Template: template, Machines: map[string]*clusterv1.Machine{"m": machine("m", linkedTo("c"))}, State: planner.State{Now: now}}}
			snap.Plan.Served = map[types.UID]string{"c": "m"}
			r := w.newProcess()
			w.setMachine(t, "m", func(m *clusterv1.Machine) { delete(m.Labels, v1alpha1.NodeClaimUIDLabel) })
			knowLinked(t, r)
			w.setMachine(t, "m", linkedTo("c"))
			if err := r.markFailed(t.Context(), w.claim(t, "c"), &failure.Failure{Kind: kind, Message: "why"}, snap); err != nil {
				t.Fatal(err)
			}
			if got := w.marks(t); (len(got) > 0) != marked {
				t.Errorf("got the marks %+v, want any: %t", got, marked)
			}
			older := machine("m", linkedTo("c"))
			older.ResourceVersion = "1"
			known, err := r.links.Newest(t.Context(), resourceName, []clusterv1.Machine{*older})
			if err != nil {
				t.Fatal(err)
			}
			if read := known[0].Spec.ProviderID != ""; read == marked {
				t.Errorf("the next reconcile knows the Machine as it was read: %t", read)
			}
		})
	}
}

// All claims of an offering that has failed need one mark.
func TestOneMarkForAllClaimsOfAnOffering(t *testing.T) {
	w := newWorld(launched("a"), launched("b"), machine("m1", linkedTo("a"), infrastructure("InsufficientInstanceCapacity")), machine("m2", linkedTo("b"), infrastructure("InsufficientInstanceCapacity")))
	result, err := w.newProcess().Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: resourceName}})
	if err != nil || result.RequeueAfter <= time.Second {
		t.Errorf("got %+v and %v, want no conflict", result, err)
	}
	if marks := w.marks(t); len(marks) != 1 || marks[0].Failures != 1 {
		t.Errorf("got the marks %+v", marks)
	}
}

// A resource of another owner, and one that does not exist, is left alone.
func TestNoResource(t *testing.T) {
	w := newWorld()
	resource := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "theirs"}}
	if err := w.api.Create(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"theirs", "missing"} {
		if err := reconcileNamed(t, w.newProcess(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The launch of a claim becomes too long at a time that no event announces.
func TestReconcileIsDueWithItsLaunches(t *testing.T) {
	w := newWorld(launched("c"), machine("m", linkedTo("c"), infrastructure("NotReady")))
	result, err := w.newProcess().Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: resourceName}})
	if err != nil || result.RequeueAfter <= 0 {
		t.Errorf("the next reconcile is due in %s (%v)", result.RequeueAfter, err)
	}
}

// toldObjects are the names of the objects of events.
type toldObjects []string

func (o *toldObjects) Publish(all ...events.Event) {
	for _, event := range all {
		*o = append(*o, event.InvolvedObject.(client.Object).GetName())
	}
}
