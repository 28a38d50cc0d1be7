// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
)

// rolling is a cell with a template that has a rollout.
type rolling struct {
	*cell
	t      *testing.T
	writes int
}

// launch creates a claim with what the template generates now, and its Node, which is ready.
func (r *rolling) launch(name string) {
	r.t.Helper()
	launch, err := generate.LaunchOf(r.t.Context(), r.clusters, r.catalog, r.template(), catalog.Key{InstanceType: "m5", Zone: "a", CapacityType: "on-demand"})
	if err != nil {
		r.t.Fatal(err)
	}
	claim := claimOf(name, "m5", "a", "on-demand")
	claim.UID, claim.CreationTimestamp, claim.Annotations = types.UID(name), metav1.NewTime(r.clock.Now()), launch.Annotate(nil)
	for _, condition := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized} {
		claim.StatusConditions().SetTrue(condition)
	}
	claim.Status.NodeName = "node-" + name
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claim.Status.NodeName}}
	for _, object := range []client.Object{claim, node} {
		if err := r.Create(r.t.Context(), object); err != nil {
			r.t.Fatal(err)
		}
	}
	node.Status = corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, Capacity: quantities("cpu", "2", "memory", "8Gi"),
	}
	if err := r.Status().Update(r.t.Context(), node); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rolling) template() *v1alpha1.KarpenterMachineTemplate {
	r.t.Helper()
	template := &v1alpha1.KarpenterMachineTemplate{}
	if err := r.Get(r.t.Context(), client.ObjectKey{Name: "general"}, template); err != nil {
		r.t.Fatal(err)
	}
	return template
}

func (r *rolling) edit(change func(*v1alpha1.KarpenterMachineTemplate)) {
	r.t.Helper()
	template := r.template()
	template.Generation++
	change(template)
	if err := r.Update(r.t.Context(), template); err != nil {
		r.t.Fatal(err)
	}
}

// expect reconciles twice, and expects the step, whose time and canary are those of the status, and that one status was
// written.
func (r *rolling) expect(when string, step v1alpha1.RolloutStep, canary string, status metav1.ConditionStatus, again time.Duration) {
	r.t.Helper()
	r.writes = 0
	var result reconcile.Result
	for range 2 {
		r.fails = func(verb string, _ any, _ string) error {
			if verb == "patch" {
				r.writes++
			}
			return nil
		}
		var err error
		if result, err = r.Reconcile(r.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "general"}}); err != nil {
			r.t.Fatalf("%s: %v", when, err)
		}
		r.fails = nil
	}
	template := r.template()
	got, condition := lo.FromPtr(template.Status.Rollout), template.StatusConditions().Get(v1alpha1.ConditionRolloutProgressing)
	names := strings.Join(lo.Map(got.Canary, func(c v1alpha1.RolloutNodeClaim, _ int) string { return c.Name }), " ")
	if got.Step != step || names != canary || condition == nil || condition.Status != status || result.RequeueAfter != again {
		r.t.Fatalf("%s: got step %q with canary %q and %+v, and again after %s, want %s, %q, %s and %s", when, got.Step, names, condition, result.RequeueAfter, step, canary, status, again)
	}
	if r.writes > 1 {
		r.t.Errorf("%s: %d writes of the status, want one", when, r.writes)
	}
}

// A rollout goes from step to step, with one write for each. It stops if a new Node is not ready, and ends without spec.rollout.
func TestRolloutOfTemplate(t *testing.T) {
	template := newTemplate()
	template.Spec.Rollout = &v1alpha1.Rollout{}
	r := &rolling{cell: newCell(template), t: t}
	r.expect("without Nodes", v1alpha1.RolloutComplete, "", metav1.ConditionTrue, 0)
	r.launch("a")
	r.clock.Step(time.Minute)
	r.launch("b")
	r.launch("c")
	r.clock.Step(time.Minute)
	r.expect("with Nodes", v1alpha1.RolloutComplete, "", metav1.ConditionTrue, 0)

	secret := func(name string) func(*v1alpha1.KarpenterMachineTemplate) {
		return func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Template.Spec.Bootstrap.DataSecretName = &name }
	}
	r.edit(secret("other"))
	r.expect("after a change", v1alpha1.RolloutCanary, "a", metav1.ConditionTrue, 10*time.Minute)
	history := r.template().Status.Rollout.History
	if len(history) != 1 || !strings.Contains(string(history[0].Spec.Raw), `"dataSecretName":"bootstrap"`) {
		t.Errorf("the history is %+v, want what ran before", history)
	}
	r.clock.Step(time.Minute)
	r.launch("d")
	r.expect("with a new Node", v1alpha1.RolloutCanary, "a", metav1.ConditionTrue, 9*time.Minute)
	if err := r.Delete(t.Context(), claimOf("a", "m5", "a", "on-demand")); err != nil {
		t.Fatal(err)
	}
	r.expect("the first is replaced", v1alpha1.RolloutSoaking, "", metav1.ConditionTrue, 10*time.Minute)
	r.clock.Step(10 * time.Minute)
	r.expect("after the soak time", v1alpha1.RolloutRolling, "", metav1.ConditionTrue, 0)

	node := &corev1.Node{}
	if err := r.Get(t.Context(), client.ObjectKey{Name: "node-d"}, node); err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions[0].Status, node.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(r.clock.Now())
	if err := r.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	r.expect("the new Node is not ready", v1alpha1.RolloutRolling, "", metav1.ConditionTrue, 10*time.Minute)
	r.clock.Step(10 * time.Minute)
	r.expect("for too long", v1alpha1.RolloutStopped, "", metav1.ConditionFalse, 0)
	if message := r.template().StatusConditions().Get(v1alpha1.ConditionRolloutProgressing).Message; !strings.Contains(message, "NodeClaim d has the Node node-d, which is not ready") {
		t.Errorf("got the message %q, want the Node and its problem", message)
	}

	r.edit(secret("bootstrap"))
	r.expect("after an undo", v1alpha1.RolloutRolling, "", metav1.ConditionTrue, 0)
	if condition := r.template().StatusConditions().Get(v1alpha1.ConditionNodesCurrent); !strings.Contains(condition.Message, "1 of 3 Nodes") {
		t.Errorf("got %q, want that only the new Node is outdated", condition.Message)
	}
	r.edit(func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Rollout = nil })
	stored, err := r.reconcile(t, "general")
	if err != nil || stored.Status.Rollout != nil || stored.StatusConditions().Get(v1alpha1.ConditionRolloutProgressing) != nil {
		t.Errorf("got %v and %+v, want no rollout", err, stored.Status.Rollout)
	}
}

// A claim whose Node has not joined stops the rollout, as the mark of its offering shows.
func TestRolloutStopsIfNodeDoesNotJoin(t *testing.T) {
	template := newTemplate()
	template.Spec.Rollout = &v1alpha1.Rollout{}
	r := &rolling{cell: newCell(template), t: t}
	r.expect("without Nodes", v1alpha1.RolloutComplete, "", metav1.ConditionTrue, 0)
	r.launch("a")
	r.clock.Step(time.Minute)
	r.edit(func(t *v1alpha1.KarpenterMachineTemplate) {
		t.Spec.Template.Spec.Bootstrap.DataSecretName = new("other")
	})
	r.expect("after a change", v1alpha1.RolloutCanary, "a", metav1.ConditionTrue, 10*time.Minute)
	claim := claimOf("b", "m5", "a", "on-demand")
	r.clock.Step(time.Minute)
	claim.CreationTimestamp, claim.Finalizers = metav1.NewTime(r.clock.Now()), []string{"x/y"}
	if err := r.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := r.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r.expect("a claim ends", v1alpha1.RolloutCanary, "a", metav1.ConditionTrue, 9*time.Minute)
	marked := r.template()
	marked.Status.UnavailableOfferings = []v1alpha1.UnavailableOffering{{
		InstanceType: "m5", Zone: "a", CapacityType: "on-demand", Reason: v1alpha1.ReasonRegistrationTimeout, Failures: 1, Until: metav1.NewTime(r.clock.Now().Add(time.Minute)),
	}}
	if err := r.Status().Update(t.Context(), marked); err != nil {
		t.Fatal(err)
	}
	r.expect("its Node has not joined", v1alpha1.RolloutStopped, "", metav1.ConditionFalse, time.Minute)
}
