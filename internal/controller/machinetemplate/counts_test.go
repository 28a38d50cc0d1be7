// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"fmt"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

func TestOnlyCounts(t *testing.T) {
	before := newTemplate()
	conditions := before.StatusConditions()
	conditions.SetFalse(v1alpha1.ConditionNodesCurrent, v1alpha1.ReasonNodesOutdated, "1 of 3 Nodes")
	conditions.SetFalse(v1alpha1.ConditionInfrastructureReady, v1alpha1.ReasonReferenceNotFound, "a is missing")
	before.Status.Machines, before.Status.NodeClaims, before.Status.InstanceTypes, before.Status.AvailableOfferings = 3, 3, 2, 2
	before.Status.ScalableResources = []v1alpha1.ScalableResourceStatus{{Name: "a", Replicas: 3, ReadyReplicas: 2}, {Name: "b", Replicas: 1, Paused: true}}
	message := func(condition, message string) func(*v1alpha1.KarpenterMachineTemplate) {
		return func(t *v1alpha1.KarpenterMachineTemplate) {
			for i := range t.Status.Conditions {
				if t.Status.Conditions[i].Type == condition {
					t.Status.Conditions[i].Message = message
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KarpenterMachineTemplate)
		want   bool
	}{
		"nothing":          {want: true, change: func(*v1alpha1.KarpenterMachineTemplate) {}},
		"Machines":         {want: true, change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.Machines = 4 }},
		"NodeClaims":       {want: true, change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.NodeClaims = 4 }},
		"offerings to use": {want: true, change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.AvailableOfferings = 1 }},
		"replicas":         {want: true, change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.ScalableResources[0].Replicas = 4 }},
		"ready replicas":   {want: true, change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.ScalableResources[0].ReadyReplicas = 3 }},
		"replicas, paused": {want: true, change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.ScalableResources[1].Replicas = 0 }},
		"a use of a limit": {want: true, change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Status.LimitedOfferings = []v1alpha1.LimitedOffering{{Limit: 2}}
		}},
		"outdated Nodes": {want: true, change: message(v1alpha1.ConditionNodesCurrent, "2 of 3 Nodes")},
		"the summary":    {want: true, change: message(status.ConditionReady, "waits for 3 NodeClaims")},
		"another resource": {want: true, change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Status.ScalableResources = append(t.Status.ScalableResources, v1alpha1.ScalableResourceStatus{Name: "c"})
		}},

		"a pause":            {change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.ScalableResources[0].Paused = true }},
		"the end of a pause": {change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.ScalableResources[1].Paused = false }},
		"a paused resource that no longer exists": {change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Status.ScalableResources = t.Status.ScalableResources[:1]
		}},
		"another reason": {change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.StatusConditions().SetFalse(v1alpha1.ConditionNodesCurrent, "Other", "1 of 3 Nodes")
		}},
		"another status": {change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.StatusConditions().SetTrue(v1alpha1.ConditionNodesCurrent)
		}},
		"what to correct":    {change: message(v1alpha1.ConditionInfrastructureReady, "b is missing")},
		"another generation": {change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.Conditions[0].ObservedGeneration++ }},
		"a failed offering": {change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{{InstanceType: "m5", Until: metav1.NewTime(began)}}
		}},
		"invalid offerings": {change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Status.InvalidOfferings = []v1alpha1.InvalidOfferings{{Count: 1}}
		}},
		"instance types":    {change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.InstanceTypes = 3 }},
		"the version":       {change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.Version = "v1.36.4" }},
		"what was accepted": {change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Status.AcceptedHash = "x" }},
		"what Nodes report": {change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Status.ObservedCapacity = []v1alpha1.ObservedCapacity{{InstanceType: "m5", Nodes: 1}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			after, unchanged := before.DeepCopy(), before.DeepCopy()
			tc.change(after)
			changed := after.DeepCopy()
			if got := onlyCounts(&before.Status, &after.Status); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
			if !equality.Semantic.DeepEqual(before, unchanged) || !equality.Semantic.DeepEqual(after, changed) {
				t.Error("a status was changed")
			}
		})
	}
}

// Counts alone are written at most once in an interval, with all that has changed until then. Anything else is written at
// once, with the counts.
func TestCountsAreWrittenSeldom(t *testing.T) {
	c := newCell(newTemplate())
	writes := 0
	count := func(verb string, _ any, _ string) error {
		if verb == "patch" {
			writes++
		}
		return nil
	}
	claims := 0
	launch := func() {
		t.Helper()
		claims++
		if err := c.Create(t.Context(), claimOf(string(rune('a'+claims)), "m5", "a", "on-demand")); err != nil {
			t.Fatal(err)
		}
	}
	// reconcile expects how many writes there were, the NodeClaims in the status, and when the next reconcile is.
	reconciled := func(step string, wantWrites, wantClaims int, wantAgain time.Duration) {
		t.Helper()
		c.fails = count
		result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}})
		stored := &v1alpha1.KarpenterMachineTemplate{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "general"}, stored); err != nil {
			t.Fatal(err)
		}
		if err != nil || writes != wantWrites || int(stored.Status.NodeClaims) != wantClaims || result.RequeueAfter != wantAgain {
			t.Errorf("%s: got error %v, %d writes, %d NodeClaims and the next reconcile after %s, want %d, %d and %s",
				step, err, writes, stored.Status.NodeClaims, result.RequeueAfter, wantWrites, wantClaims, wantAgain)
		}
	}
	reconciled("at first", 1, 0, 0)
	c.clock.Step(4 * time.Second)
	launch()
	reconciled("a count has changed", 1, 0, 6*time.Second)
	c.clock.Step(2 * time.Second)
	launch()
	reconciled("it has changed again", 1, 0, 4*time.Second)
	c.clock.Step(4 * time.Second)
	reconciled("after the interval", 2, 2, 0)
	reconciled("nothing has changed", 2, 2, 0)

	c.clock.Step(time.Second)
	launch()
	reconciled("it has changed after that", 2, 2, 9*time.Second)
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "general"}, template); err != nil {
		t.Fatal(err)
	}
	template.Spec.CatalogRefs, template.Generation = nil, template.Generation+1
	if err := c.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	reconciled("a condition has changed", 3, 3, 0)

	launch()
	reconciled("a count has changed before a restart", 3, 3, 10*time.Second)
	c.start(c.clusters)
	reconciled("after a restart", 4, 4, 0)
	c.clock.Step(time.Hour)
	launch()
	reconciled("after a long time", 5, 5, 0)
}

// An offering at its limit cannot be chosen, before the status shows that.
func TestLimitsDoNotWaitForTheStatus(t *testing.T) {
	template, listed := newTemplate(), newCatalog()
	listed.Spec.InstanceTypes[0].Offerings[0].MaxMachines = new(int32(1))
	c := newCell(template, listed)
	if _, err := c.reconcile(t, "general"); err != nil {
		t.Fatal(err)
	}
	c.clock.Step(time.Second)
	claim := claimOf("a", "m5", "a", "on-demand")
	if err := c.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	available := func(stored *v1alpha1.KarpenterMachineTemplate) bool {
		t.Helper()
		instanceTypes, err := c.catalog.InstanceTypes(t.Context(), stored, c.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return instanceTypes[0].Offerings[0].Available
	}
	stored, err := c.reconcile(t, "general")
	if err != nil || stored.Status.NodeClaims != 0 || available(stored) {
		t.Errorf("got %v and %d NodeClaims in the status, and the offering is available: %t", err, stored.Status.NodeClaims, available(stored))
	}
	if err := c.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if stored, err = c.reconcile(t, "general"); err != nil || !available(stored) {
		t.Errorf("got %v: the offering is not available although nothing uses it", err)
	}
}

// delayed is a queue that has the delay of what was enqueued last.
type delayed struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	by time.Duration
}

func (d *delayed) AddAfter(_ reconcile.Request, by time.Duration) { d.by = by }

// A reconcile reads all claims of a template. With many of them, their events are collected for longer.
func TestManyClaims(t *testing.T) {
	objects := []client.Object{newTemplate()}
	for i := range 1500 {
		objects = append(objects, claimOf(fmt.Sprintf("c%d", i), "m5", "a", "on-demand"))
	}
	c := newCell(objects...)
	expect := func(when string, want time.Duration) {
		t.Helper()
		q := &delayed{}
		c.spacing.Later(c.templates.OfClaim).Delete(t.Context(), event.DeleteEvent{Object: objects[1]}, q)
		if q.by != want {
			t.Errorf("%s, an event is handled after %s, want %s", when, q.by, want)
		}
	}
	expect("before the first reconcile", time.Second)
	if _, err := c.reconcile(t, "general"); err != nil {
		t.Fatal(err)
	}
	expect("with 1,500 claims", 1500*time.Millisecond)
	c.clock.Step(time.Minute)
	expect("after a quiet time", time.Second)
}
