// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/nodeclaims"
	"github.com/karpenter-capi/karpenter-capi/internal/planner"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// The next reconcile is due when time alone changes the plan, and not earlier.
func TestDue(t *testing.T) {
	machine := func(age time.Duration, change ...func(*clusterv1.Machine)) []*clusterv1.Machine {
		m := fixture.Machine(age)
		m.Labels, m.Annotations = map[string]string{}, map[string]string{}
		for _, f := range change {
			f(m)
		}
		return []*clusterv1.Machine{m}
	}
	linked := func(m *clusterv1.Machine) { m.Labels[v1alpha1.NodeClaimUIDLabel] = "c" }
	node := func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }
	withID := func(m *clusterv1.Machine) { m.Spec.ProviderID = "sim://m" }
	leaving := func(m *clusterv1.Machine) { m.DeletionTimestamp = new(metav1.NewTime(fixture.Noon)) }
	spare := func(age time.Duration) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			m.Annotations[v1alpha1.SpareSinceAnnotation] = timestamp.Format(fixture.Noon.Add(-age))
		}
	}
	leftAt := func(name string, ago time.Duration) *clusterv1.Machine {
		m := fixture.Machine(time.Minute)
		m.Name, m.DeletionTimestamp = name, new(metav1.NewTime(fixture.Noon.Add(-ago)))
		return m
	}
	claim := func(age time.Duration, change ...func(*karpv1.NodeClaim)) []*karpv1.NodeClaim {
		c := fixture.Claim(age)
		for _, f := range change {
			f(c)
		}
		return []*karpv1.NodeClaim{c}
	}
	available := func(reason string, age time.Duration) func(*karpv1.NodeClaim) {
		return func(c *karpv1.NodeClaim) {
			c.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, reason, "why")
			for i := range c.Status.Conditions {
				if c.Status.Conditions[i].Type == v1alpha1.ConditionMachineAvailable {
					c.Status.Conditions[i].LastTransitionTime = metav1.NewTime(fixture.Noon.Add(-age))
				}
			}
		}
	}
	ends := func(c *karpv1.NodeClaim) { c.DeletionTimestamp = new(metav1.NewTime(fixture.Noon)) }
	for name, tc := range map[string]struct {
		machines []*clusterv1.Machine
		claims   []*karpv1.NodeClaim
		fresh    bool // the Node of the Machine is not registered
		limited  bool
		up       time.Duration // for how long both clusters could be reached; an hour if zero
		scaling  planner.Scaling
		want     time.Duration
	}{
		"nothing": {},
		// A second ago, now, in a minute, and in two.
		"times of a pool": {
			machines: []*clusterv1.Machine{leftAt("a", 11*time.Second), leftAt("b", 10*time.Second)},
			scaling:  planner.Pool{ReplicasSetAt: fixture.Noon.Add(50 * time.Second), SettlesAt: fixture.Noon.Add(2 * time.Minute)}, want: time.Minute,
		},
		"a new Machine, which could stall":        {machines: machine(10*time.Second, linked), want: 20 * time.Second},
		"a booting Machine":                       {machines: machine(time.Minute, linked), want: 9 * time.Minute},
		"a booting Machine since an outage":       {machines: machine(9*time.Minute, linked), up: 10 * time.Second, want: 20 * time.Second},
		"a Machine after launchTimeoutSeconds":    {machines: machine(time.Hour, linked)},
		"a spare Machine":                         {machines: machine(time.Minute), want: time.Minute},
		"one that was unlinked":                   {machines: machine(5*time.Minute, spare(30*time.Second)), want: 90 * time.Second},
		"a spare Machine since an outage":         {machines: machine(5 * time.Minute), up: time.Minute, want: time.Minute},
		"a leaving Machine":                       {machines: machine(time.Minute, leaving)},
		"a Node of a claim":                       {machines: machine(10*time.Second, linked, node)},
		"a spare Node":                            {machines: machine(10*time.Second, node, spare(30*time.Second)), want: 90 * time.Second},
		"a spare Node that is not registered":     {machines: machine(10*time.Second, node, spare(30*time.Second)), fresh: true, want: 20 * time.Second},
		"a new claim, which could stall":          {claims: claim(10 * time.Second), want: 20 * time.Second},
		"a claim that waits":                      {claims: claim(time.Minute), want: 9 * time.Minute},
		"a claim that is being deleted":           {claims: claim(time.Minute, ends)},
		"a claim that has its Node":               {claims: claim(time.Minute, func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered) })},
		"a claim that exceeds a limit":            {claims: claim(time.Hour), limited: true, want: time.Minute},
		"a claim that is stalled":                 {claims: claim(time.Hour, available(v1alpha1.ReasonNoProgress, time.Minute)), want: 30 * time.Second},
		"a stalled claim that is being deleted":   {claims: claim(time.Hour, available(v1alpha1.ReasonNoProgress, time.Minute), ends)},
		"a claim that is blocked":                 {claims: claim(time.Hour, available(v1alpha1.ReasonBlocked, time.Minute)), want: 30 * time.Second},
		"a claim whose launch has resumed":        {claims: claim(time.Hour, available(v1alpha1.ReasonResumed, time.Minute)), want: 9 * time.Minute},
		"a served claim whose launch resumed":     {machines: machine(11*time.Minute, linked), claims: claim(time.Hour, available(v1alpha1.ReasonResumed, time.Minute)), want: 2 * time.Minute},
		"a served claim that is stalled":          {machines: machine(11*time.Minute, linked), claims: claim(time.Hour, available(v1alpha1.ReasonNoProgress, time.Minute)), want: 30 * time.Second},
		"a served claim whose Machine has its ID": {machines: machine(11*time.Minute, linked, withID), claims: claim(time.Hour, available(v1alpha1.ReasonResumed, time.Minute)), want: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			state := stateFrom(t, tc.claims, tc.machines...)
			state.UpSince = fixture.Noon.Add(-cmp.Or(tc.up, time.Hour))
			state.Scaling = tc.scaling
			if tc.fresh {
				state.Machines[0].HasNode = false
			}
			if tc.limited {
				state.Claims[0].OverLimit = true
			}
			if got := planner.Decide(state).Due; got.In != tc.want || (got.Why == "") != (tc.want == 0) {
				t.Errorf("due in %s, because %q; want %s", got.In, got.Why, tc.want)
			}
		})
	}
}

// What the conditions of a claim say about its Machine.
func TestClaimFacts(t *testing.T) {
	type facts struct{ Needs, Stalled, Rejected, Waited bool }
	set := func(change func(*karpv1.NodeClaim)) *karpv1.NodeClaim {
		claim := fixture.Claim(time.Minute)
		change(claim)
		return claim
	}
	unknown := func(reason string) *karpv1.NodeClaim {
		return set(func(c *karpv1.NodeClaim) {
			c.StatusConditions().SetUnknownWithReason(v1alpha1.ConditionMachineAvailable, reason, "")
		})
	}
	for name, tc := range map[string]struct {
		claim *karpv1.NodeClaim
		want  facts
	}{
		"launched":           {claim: fixture.Claim(time.Minute), want: facts{Needs: true}},
		"not launched":       {claim: &karpv1.NodeClaim{}},
		"being deleted":      {claim: set(func(c *karpv1.NodeClaim) { c.DeletionTimestamp = new(metav1.NewTime(fixture.Noon)) })},
		"registered":         {claim: set(func(c *karpv1.NodeClaim) { c.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered) })},
		"not registered yet": {claim: set(func(c *karpv1.NodeClaim) { c.StatusConditions().SetUnknown(karpv1.ConditionTypeRegistered) }), want: facts{Needs: true}},
		"blocked":            {claim: unknown(v1alpha1.ReasonBlocked), want: facts{Needs: true, Stalled: true, Waited: true}},
		"no progress":        {claim: unknown(v1alpha1.ReasonNoProgress), want: facts{Needs: true, Stalled: true, Waited: true}},
		"rejected":           {claim: unknown(v1alpha1.ReasonRejected), want: facts{Needs: true, Rejected: true, Waited: true}},
		"resumed":            {claim: unknown(v1alpha1.ReasonResumed), want: facts{Needs: true, Waited: true}},
		"failed": {claim: set(func(c *karpv1.NodeClaim) {
			c.StatusConditions().SetFalse(v1alpha1.ConditionMachineAvailable, v1alpha1.ReasonBlocked, "x")
		}), want: facts{Needs: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := facts{nodeclaims.NeedsMachine(tc.claim), nodeclaims.IsStalled(tc.claim), nodeclaims.IsRejected(tc.claim), nodeclaims.HasWaited(tc.claim)}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
