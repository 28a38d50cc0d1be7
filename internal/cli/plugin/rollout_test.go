// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"
	"testing"
	"time"

	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// rollingOut gives the template general a rollout in a step.
func rollingOut(step v1alpha1.RolloutStep) edit {
	return named("general", func(t *v1alpha1.KarpenterMachineTemplate) {
		since := metav1.NewTime(fixture.Noon.Add(-5 * time.Minute))
		t.Spec.Rollout = &v1alpha1.Rollout{}
		t.Status.Rollout = &v1alpha1.RolloutStatus{
			Step: step, Revision: "v1-2", StartTime: since, LastTransitionTime: since,
			History: []v1alpha1.RolloutRevision{{Revision: "v1-1", Spec: &runtime.RawExtension{Raw: []byte(`{"version":"v1.36.2"}`)}}},
		}
		conditions := t.StatusConditions()
		conditions.SetFalse(v1alpha1.ConditionNodesCurrent, v1alpha1.ReasonNodesOutdated,
			"3 of 5 Nodes are not what the template generates now (InfrastructureDrift 3): the condition RolloutProgressing reports which of them are replaced now")
		if step == v1alpha1.RolloutStopped {
			conditions.SetFalse(v1alpha1.ConditionRolloutProgressing, v1alpha1.ReasonRolloutStopped, "No outdated Node is replaced any more because NodeClaim general-boots has failed")
			return
		}
		t.Status.Rollout.Canary = []v1alpha1.RolloutNodeClaim{{Name: "general-runs", UID: "runs"}}
		conditions.SetTrueWithReason(v1alpha1.ConditionRolloutProgressing, v1alpha1.ReasonRolloutCanary, "Karpenter replaces the Nodes of general-runs first")
	})
}

// What rollout status prints is in testdata/golden.
func TestRolloutStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		command string
		step    v1alpha1.RolloutStep
	}{
		"rollout status general":         {"rollout status general", v1alpha1.RolloutCanary},
		"rollout status general stopped": {"rollout status general", v1alpha1.RolloutStopped},
		"rollout status general -o yaml": {"rollout status general -o yaml", v1alpha1.RolloutCanary},
	} {
		got, messages, code := runIn(t, world(t, rollingOut(tc.step)), strings.Fields(tc.command)...)
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, messages)
		}
		compareGolden(t, name, got)
	}
}

// The commands change what the operator reads, and nothing else.
func TestRolloutChanges(t *testing.T) {
	paused := named("general", func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Rollout.Paused = new(true) })
	ahead := named("general", func(t *v1alpha1.KarpenterMachineTemplate) {
		t.Status.Rollout.LastTransitionTime = metav1.NewTime(fixture.Noon.Add(time.Hour))
	})
	for name, tc := range map[string]struct {
		command string
		changes []edit
		want    string // what is printed, or a part of the error

		wantPaused           bool
		wantResumed, wantVer string
		wantCode             int
	}{
		"pause":                    {command: "pause general", changes: []edit{rollingOut(v1alpha1.RolloutCanary)}, want: "karpentermachinetemplate/general paused\n", wantPaused: true},
		"resume":                   {command: "resume general", changes: []edit{rollingOut(v1alpha1.RolloutCanary), paused}, want: "karpentermachinetemplate/general resumed\n"},
		"begin again":              {command: "resume general", changes: []edit{rollingOut(v1alpha1.RolloutStopped)}, want: "karpentermachinetemplate/general resumed\n", wantResumed: "2026-01-01T12:00:00Z"},
		"the operator is ahead":    {command: "resume general", changes: []edit{rollingOut(v1alpha1.RolloutStopped), ahead}, want: "karpentermachinetemplate/general resumed\n", wantResumed: "2026-01-01T13:00:01Z"},
		"undo":                     {command: "undo general", changes: []edit{rollingOut(v1alpha1.RolloutStopped)}, want: "karpentermachinetemplate/general rolled back: if another tool applies the template, undo the change there, too\n", wantVer: "v1.36.2"},
		"undo during a pause":      {command: "undo general", changes: []edit{rollingOut(v1alpha1.RolloutCanary), paused}, want: "its rollout is paused: resume it first", wantPaused: true, wantCode: 1},
		"a template without":       {command: "pause gpu", changes: []edit{rollingOut(v1alpha1.RolloutCanary)}, want: "has no spec.rollout", wantCode: 1},
		"a template that is none":  {command: "undo none", changes: []edit{rollingOut(v1alpha1.RolloutCanary)}, want: "KarpenterMachineTemplate none does not exist", wantCode: 1},
		"another format":           {command: "status general -o wide", changes: []edit{rollingOut(v1alpha1.RolloutCanary)}, want: "expected one of json, yaml", wantCode: 1},
		"no template":              {command: "pause", want: "accepts 1 arg(s)", wantCode: 1},
		"a status without rollout": {command: "status gpu", changes: []edit{named("gpu", func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Rollout = &v1alpha1.Rollout{} })}, want: "has not begun", wantCode: 1},
	} {
		t.Run(name, func(t *testing.T) {
			from := world(t, tc.changes...)
			out, messages, code := runIn(t, from, strings.Fields("rollout "+tc.command)...)
			if code != tc.wantCode || !strings.Contains(out+messages, tc.want) {
				t.Errorf("exit code %d, %q and %q, want %d and %q", code, out, messages, tc.wantCode, tc.want)
			}
			c, err := from.workload(nil)
			if err != nil {
				t.Fatal(err)
			}
			stored := &v1alpha1.KarpenterMachineTemplate{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "general"}, stored); err != nil {
				t.Fatal(err)
			}
			got := lo.FromPtr(lo.FromPtr(stored.Spec.Rollout).Paused)
			if resumed := stored.Annotations[v1alpha1.RolloutResumedAtAnnotation]; got != tc.wantPaused || resumed != tc.wantResumed || stored.Spec.Template.Spec.Version != tc.wantVer {
				t.Errorf("paused %t, resumed at %q, version %q, want %t, %q and %q", got, resumed, stored.Spec.Template.Spec.Version, tc.wantPaused, tc.wantResumed, tc.wantVer)
			}
		})
	}
}
