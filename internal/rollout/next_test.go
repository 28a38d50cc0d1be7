// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// began is when the rollouts of these tests begin.
var began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// old returns an outdated claim, of which a has the greatest age.
func old(name string) Claim {
	return Claim{Name: name, UID: types.UID(name), Created: began.Add(-24*time.Hour + time.Duration(name[0])*time.Minute), Outdated: true, Healthy: true}
}

// fresh returns a claim that was created a minute after the beginning.
func fresh(name string, change ...func(*Claim)) Claim {
	c := Claim{Name: name, UID: types.UID(name), Created: began.Add(time.Minute), Healthy: true}
	for _, apply := range change {
		apply(&c)
	}
	return c
}

func booting(c *Claim) { c.Healthy = false }

func failing(c *Claim) { c.Healthy, c.Failure = false, "has failed" }

func ending(c *Claim) { c.Ending = true }

// at returns the state of a rollout to revision v1-2 that began an hour after v1-1 was complete.
func at(step v1alpha1.RolloutStep, after time.Duration, canary ...string) *v1alpha1.RolloutStatus {
	return &v1alpha1.RolloutStatus{
		Step: step, Revision: "v1-2", StartTime: metav1.NewTime(began), LastTransitionTime: metav1.NewTime(began.Add(after)),
		Canary: lo.Map(canary, func(name string, _ int) v1alpha1.RolloutNodeClaim {
			return v1alpha1.RolloutNodeClaim{Name: name, UID: name}
		}),
		History: []v1alpha1.RolloutRevision{{Revision: "v1-1", Spec: &runtime.RawExtension{Raw: []byte(`{"version":"1"}`)}}},
	}
}

// complete returns the state in which all claims have revision v1-1.
func complete() *v1alpha1.RolloutStatus {
	s := at(v1alpha1.RolloutComplete, -time.Hour)
	s.Revision, s.StartTime = "v1-1", metav1.NewTime(began.Add(-time.Hour))
	return s
}

func TestNext(t *testing.T) {
	type change = func(*v1alpha1.Rollout)
	paused := func(s *v1alpha1.Rollout) { s.Paused = new(true) }
	canary := func(value intstr.IntOrString) change { return func(s *v1alpha1.Rollout) { s.Canary = &value } }
	for name, tc := range map[string]struct {
		spec     []change
		status   *v1alpha1.RolloutStatus
		revision string // v1-2 if it is empty
		resumed  time.Duration
		now      time.Duration
		claims   []Claim

		want       v1alpha1.RolloutStep // empty if there is no rollout
		wantCanary string
		wantAgain  time.Duration
	}{
		"a template without Nodes gets a rollout":  {want: v1alpha1.RolloutComplete},
		"a template with outdated Nodes does":      {claims: []Claim{old("b"), old("a")}, want: v1alpha1.RolloutCanary, wantCanary: "a", wantAgain: 10 * time.Minute},
		"it does while it is paused":               {spec: []change{paused}, claims: []Claim{old("a")}},
		"the content changes":                      {status: complete(), claims: []Claim{old("c"), old("a"), old("b")}, want: v1alpha1.RolloutCanary, wantCanary: "a", wantAgain: 10 * time.Minute},
		"the content changes for no Node":          {status: complete(), claims: []Claim{fresh("a")}, want: v1alpha1.RolloutComplete},
		"the content changes during a pause":       {spec: []change{paused}, status: complete(), claims: []Claim{old("a")}, want: v1alpha1.RolloutComplete},
		"an offering is removed":                   {status: complete(), revision: "v1-1", claims: []Claim{old("a"), fresh("b")}, want: v1alpha1.RolloutCanary, wantCanary: "a", wantAgain: 10 * time.Minute},
		"two are the canary":                       {spec: []change{canary(intstr.FromInt32(2))}, status: complete(), claims: []Claim{old("c"), old("b"), old("a")}, want: v1alpha1.RolloutCanary, wantCanary: "a b", wantAgain: 10 * time.Minute},
		"more are the canary than there are":       {spec: []change{canary(intstr.FromInt32(9))}, status: complete(), claims: []Claim{old("b"), old("a")}, want: v1alpha1.RolloutCanary, wantCanary: "a b", wantAgain: 10 * time.Minute},
		"a percentage is rounded up":               {spec: []change{canary(intstr.FromString("34%"))}, status: complete(), claims: []Claim{old("c"), old("b"), old("a")}, want: v1alpha1.RolloutCanary, wantCanary: "a b", wantAgain: 10 * time.Minute},
		"the canary is being replaced":             {status: at(v1alpha1.RolloutCanary, 0, "a"), now: 5 * time.Minute, claims: []Claim{old("a"), old("b"), fresh("x", booting)}, want: v1alpha1.RolloutCanary, wantCanary: "a", wantAgain: 5 * time.Minute},
		"the canary is drained":                    {status: at(v1alpha1.RolloutCanary, 0, "a"), now: 5 * time.Minute, claims: []Claim{{Name: "a", UID: "a", Ending: true}, old("b"), fresh("x")}, want: v1alpha1.RolloutSoaking, wantAgain: 10 * time.Minute},
		"a part of the canary is left":             {status: at(v1alpha1.RolloutCanary, 0, "a", "b"), now: time.Hour, claims: []Claim{old("b"), old("c"), fresh("x")}, want: v1alpha1.RolloutCanary, wantCanary: "a b"},
		"the new Node is not ready":                {status: at(v1alpha1.RolloutCanary, 0, "a"), now: time.Hour, claims: []Claim{old("b"), fresh("x", booting)}, want: v1alpha1.RolloutCanary, wantCanary: "a"},
		"the new Node has a deadline":              {status: at(v1alpha1.RolloutCanary, 0, "a"), now: time.Hour, claims: []Claim{old("b"), fresh("x", booting, func(c *Claim) { c.FailsAt = began.Add(time.Hour + time.Minute) })}, want: v1alpha1.RolloutCanary, wantCanary: "a", wantAgain: time.Minute},
		"the canary got no new Node yet":           {status: at(v1alpha1.RolloutCanary, 0, "a"), now: 5 * time.Minute, claims: []Claim{old("b")}, want: v1alpha1.RolloutCanary, wantCanary: "a", wantAgain: 5 * time.Minute},
		"the canary got no new Node":               {status: at(v1alpha1.RolloutCanary, 0, "a"), now: 10 * time.Minute, claims: []Claim{old("b"), old("c")}, want: v1alpha1.RolloutCanary, wantCanary: "b", wantAgain: 10 * time.Minute},
		"the canary got none, and a Node drains":   {status: at(v1alpha1.RolloutCanary, 0, "a"), now: 10 * time.Minute, claims: []Claim{old("b"), {Name: "a", UID: "a", Ending: true}}, want: v1alpha1.RolloutCanary, wantCanary: "a"},
		"the last Nodes got no new ones":           {status: at(v1alpha1.RolloutCanary, 0, "a"), now: time.Minute, want: v1alpha1.RolloutComplete},
		"there is no soak time":                    {spec: []change{func(s *v1alpha1.Rollout) { s.SoakSeconds = new(int32(0)) }}, status: at(v1alpha1.RolloutCanary, 0, "a"), now: 5 * time.Minute, claims: []Claim{old("b"), fresh("x")}, want: v1alpha1.RolloutRolling},
		"the soak time is not over":                {status: at(v1alpha1.RolloutSoaking, 0), now: 9 * time.Minute, claims: []Claim{old("b"), fresh("x")}, want: v1alpha1.RolloutSoaking, wantAgain: time.Minute},
		"the soak time is over":                    {status: at(v1alpha1.RolloutSoaking, 0), now: 10 * time.Minute, claims: []Claim{old("b"), fresh("x")}, want: v1alpha1.RolloutRolling},
		"no new Node is ready after it":            {status: at(v1alpha1.RolloutSoaking, 0), now: 10 * time.Minute, claims: []Claim{old("b"), fresh("x", booting)}, want: v1alpha1.RolloutSoaking},
		"no new Node is left":                      {status: at(v1alpha1.RolloutSoaking, 0), now: 10 * time.Minute, claims: []Claim{old("b"), fresh("x", ending)}, want: v1alpha1.RolloutCanary, wantAgain: 10 * time.Minute},
		"the soak time is over during a pause":     {spec: []change{paused}, status: at(v1alpha1.RolloutSoaking, 0), now: time.Hour, claims: []Claim{old("b"), fresh("x")}, want: v1alpha1.RolloutSoaking},
		"the rest is replaced":                     {status: at(v1alpha1.RolloutRolling, 0), now: time.Hour, claims: []Claim{old("b"), fresh("x")}, want: v1alpha1.RolloutRolling},
		"all are replaced":                         {status: at(v1alpha1.RolloutRolling, 0), now: time.Hour, claims: []Claim{fresh("x"), fresh("y", booting)}, want: v1alpha1.RolloutComplete},
		"a new Node fails in the canary":           {status: at(v1alpha1.RolloutCanary, 0, "a"), claims: []Claim{old("a"), fresh("x", failing)}, want: v1alpha1.RolloutStopped},
		"a new Node fails in the soak time":        {status: at(v1alpha1.RolloutSoaking, 0), claims: []Claim{old("b"), fresh("x"), fresh("y", failing)}, want: v1alpha1.RolloutStopped},
		"a new Node fails after it":                {status: at(v1alpha1.RolloutRolling, 0), claims: []Claim{old("b"), fresh("x", failing, ending)}, want: v1alpha1.RolloutStopped},
		"a new Node fails during a pause":          {spec: []change{paused}, status: at(v1alpha1.RolloutRolling, 0), claims: []Claim{old("b"), fresh("x", failing)}, want: v1alpha1.RolloutStopped},
		"an outdated Node fails":                   {status: at(v1alpha1.RolloutRolling, 0), claims: []Claim{{Name: "a", UID: "a", Created: began.Add(-time.Hour), Outdated: true, Failure: "has failed"}}, want: v1alpha1.RolloutRolling},
		"a Node from before fails":                 {status: at(v1alpha1.RolloutCanary, 0, "a"), claims: []Claim{old("a"), {Name: "b", UID: "b", Created: began.Add(-time.Hour), Failure: "has failed"}}, want: v1alpha1.RolloutCanary, wantCanary: "a", wantAgain: 10 * time.Minute},
		"it has stopped":                           {status: at(v1alpha1.RolloutStopped, time.Minute), now: time.Hour, claims: []Claim{old("b"), fresh("x")}, want: v1alpha1.RolloutStopped},
		"it was resumed before":                    {status: at(v1alpha1.RolloutStopped, time.Minute), now: time.Hour, resumed: time.Second, claims: []Claim{old("b"), fresh("x")}, want: v1alpha1.RolloutStopped},
		"it is resumed":                            {status: at(v1alpha1.RolloutStopped, time.Minute), now: time.Hour, resumed: 30 * time.Minute, claims: []Claim{old("b"), old("c"), fresh("x", failing)}, want: v1alpha1.RolloutCanary, wantCanary: "b", wantAgain: 10 * time.Minute},
		"it is corrected":                          {status: at(v1alpha1.RolloutStopped, time.Minute), revision: "v1-3", now: time.Hour, claims: []Claim{old("b"), old("c")}, want: v1alpha1.RolloutCanary, wantCanary: "b", wantAgain: 10 * time.Minute},
		"it is undone":                             {status: at(v1alpha1.RolloutStopped, time.Minute), revision: "v1-1", now: time.Hour, claims: []Claim{fresh("b"), old("c")}, want: v1alpha1.RolloutRolling},
		"it is undone before any Node is replaced": {status: at(v1alpha1.RolloutCanary, 0, "a"), revision: "v1-1", now: time.Minute, claims: []Claim{fresh("a")}, want: v1alpha1.RolloutComplete},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Spec: &v1alpha1.Rollout{}, Status: tc.status, Revision: lo.CoalesceOrEmpty(tc.revision, "v1-2"), Claims: tc.claims, Now: began.Add(tc.now)}
			for _, apply := range tc.spec {
				apply(in.Spec)
			}
			if tc.resumed != 0 {
				in.ResumedAt = began.Add(tc.resumed)
			}
			before := tc.status.DeepCopy()
			got, again := Next(in)
			if diff := cmp.Diff(before, tc.status); diff != "" {
				t.Errorf("it has changed what it was given: %s", diff)
			}
			if lo.FromPtr(got).Step != tc.want || again != tc.wantAgain {
				t.Errorf("got %q, and again after %s, want %q and %s", lo.FromPtr(got).Step, again, tc.want, tc.wantAgain)
			}
			names := lo.Map(lo.FromPtr(got).Canary, func(c v1alpha1.RolloutNodeClaim, _ int) string { return c.Name })
			if strings.Join(names, " ") != tc.wantCanary {
				t.Errorf("got the canary %v, want %s", names, tc.wantCanary)
			}
			in.Status = got
			if same, _ := Next(in); same != got {
				t.Errorf("it is not settled: %s", cmp.Diff(got, same))
			}
		})
	}
}

// The history has what ran when the last two rollouts were complete, each revision once.
func TestHistory(t *testing.T) {
	var s *v1alpha1.RolloutStatus
	for i, tc := range []struct{ revision, want string }{
		{"v1-1", "v1-1"}, {"v1-1", "v1-1"}, {"v1-2", "v1-2 v1-1"}, {"v1-1", "v1-1 v1-2"}, {"v1-3", "v1-3 v1-1"},
	} {
		stored := &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"version":%q}`, tc.revision)}
		s, _ = Next(Input{Spec: &v1alpha1.Rollout{}, Status: s, Revision: tc.revision, Stored: stored, Now: began.Add(time.Duration(i) * time.Hour)})
		got := strings.Join(lo.Map(s.History, func(r v1alpha1.RolloutRevision, _ int) string { return r.Revision }), " ")
		if got != tc.want || string(s.History[0].Spec.Raw) != string(stored.Raw) {
			t.Errorf("step %d: got %s, want %s", i, got, tc.want)
		}
	}
}

// What ran before is restored, and nothing else of the spec.
func TestUndo(t *testing.T) {
	version := func(v string) *runtime.RawExtension {
		return &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"version":%q}`, v)}
	}
	for name, tc := range map[string]struct {
		present  string
		revision string // of the rollout; the history has v1-2 and v1-1
		from     bool
		history  []*runtime.RawExtension
		want     string // the version; empty if there is an error
		problem  string
	}{
		"a rollout is in progress":                  {present: "v1.3.0", revision: "v1-3", history: []*runtime.RawExtension{version("v1.2.0"), version("v1.1.0")}, want: "v1.2.0"},
		"a rollout is complete":                     {present: "v1.2.0", revision: "v1-2", history: []*runtime.RawExtension{version("v1.2.0"), version("v1.1.0")}, want: "v1.1.0"},
		"a rollout has not begun":                   {present: "v1.3.0", revision: "v1-2", history: []*runtime.RawExtension{version("v1.2.0"), version("v1.1.0")}, want: "v1.2.0"},
		"the spec before was too large":             {present: "v1.3.0", revision: "v1-3", history: []*runtime.RawExtension{nil, version("v1.1.0")}, problem: "by hand"},
		"a base template is edited":                 {present: "v1.2.0", revision: "v1-3", history: []*runtime.RawExtension{version("v1.2.0"), version("v1.1.0")}, problem: "by hand"},
		"it is complete, and nothing was before it": {present: "v1.2.0", revision: "v1-2", history: []*runtime.RawExtension{version("v1.2.0")}, problem: "by hand"},
		"there is no history":                       {present: "v1.2.0", revision: "v1-2", problem: "by hand"},
		"a template that follows":                   {from: true, revision: "v1-3", history: []*runtime.RawExtension{nil}, problem: "undo the change there"},
	} {
		t.Run(name, func(t *testing.T) {
			template := &v1alpha1.KarpenterMachineTemplate{}
			template.Spec.Template.Spec.Version, template.Spec.Template.Metadata.Labels = tc.present, map[string]v1alpha1.LabelValue{"a": "b"}
			if tc.from {
				template.Spec.Template.From = &v1alpha1.MachineTemplateSource{}
			}
			template.Status.Rollout = &v1alpha1.RolloutStatus{Revision: tc.revision, History: lo.Map(tc.history, func(spec *runtime.RawExtension, i int) v1alpha1.RolloutRevision {
				return v1alpha1.RolloutRevision{Revision: fmt.Sprintf("v1-%d", 2-i), Spec: spec}
			})}
			err := Undo(template)
			if (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Fatalf("got %v, want %q", err, tc.problem)
			}
			if got := template.Spec.Template; err == nil && (got.Spec.Version != tc.want || got.Metadata.Labels["a"] != "b") {
				t.Errorf("got %+v, want version %s", got, tc.want)
			}
		})
	}
}

func TestMayReplace(t *testing.T) {
	for name, tc := range map[string]struct {
		spec     *v1alpha1.Rollout
		status   *v1alpha1.RolloutStatus
		revision string
		want     string // the claims of a and b that may be replaced
	}{
		"no spec.rollout":           {want: "ab"},
		"not examined":              {spec: &v1alpha1.Rollout{}},
		"another revision":          {spec: &v1alpha1.Rollout{}, status: at(v1alpha1.RolloutRolling, 0), revision: "v1-3"},
		"the canary":                {spec: &v1alpha1.Rollout{}, status: at(v1alpha1.RolloutCanary, 0, "a"), want: "a"},
		"the soak time":             {spec: &v1alpha1.Rollout{}, status: at(v1alpha1.RolloutSoaking, 0)},
		"the rest":                  {spec: &v1alpha1.Rollout{}, status: at(v1alpha1.RolloutRolling, 0), want: "ab"},
		"outdated after the end":    {spec: &v1alpha1.Rollout{}, status: at(v1alpha1.RolloutComplete, 0)},
		"stopped":                   {spec: &v1alpha1.Rollout{}, status: at(v1alpha1.RolloutStopped, 0)},
		"paused":                    {spec: &v1alpha1.Rollout{Paused: new(true)}, status: at(v1alpha1.RolloutRolling, 0)},
		"the canary during a pause": {spec: &v1alpha1.Rollout{Paused: new(true)}, status: at(v1alpha1.RolloutCanary, 0, "a")},
	} {
		template := &v1alpha1.KarpenterMachineTemplate{Spec: v1alpha1.KarpenterMachineTemplateSpec{Rollout: tc.spec}, Status: v1alpha1.KarpenterMachineTemplateStatus{Rollout: tc.status}}
		got := ""
		for _, claim := range []string{"a", "b"} {
			if MayReplace(template, lo.CoalesceOrEmpty(tc.revision, "v1-2"), types.UID(claim)) {
				got += claim
			}
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestSetCondition(t *testing.T) {
	stopped := at(v1alpha1.RolloutStopped, 0)
	stopped.Message = "NodeClaim x has failed"
	for name, tc := range map[string]struct {
		paused bool
		status *v1alpha1.RolloutStatus
		want   [3]string
	}{
		"canary":                 {status: at(v1alpha1.RolloutCanary, 0, "b", "a"), want: [3]string{"True", "Canary", "Karpenter replaces the Nodes of a, b first"}},
		"waiting":                {status: at(v1alpha1.RolloutCanary, 0), want: [3]string{"True", "Canary", "The rollout waits for a new Node"}},
		"soaking":                {status: at(v1alpha1.RolloutSoaking, 0), want: [3]string{"True", "Soaking", "New Nodes are observed until 2026-01-01T12:10:00Z before the other outdated Nodes are replaced"}},
		"rolling":                {status: at(v1alpha1.RolloutRolling, 0), want: [3]string{"True", "Rolling", "Karpenter replaces all outdated Nodes within the disruption budgets of their NodePools"}},
		"complete":               {status: at(v1alpha1.RolloutComplete, 0), want: [3]string{"True", "RolloutComplete", "All Nodes are what the template generates"}},
		"paused":                 {paused: true, status: at(v1alpha1.RolloutRolling, 0), want: [3]string{"Unknown", "RolloutPaused", "No outdated Node is replaced while spec.rollout.paused is true"}},
		"paused before it began": {paused: true, want: [3]string{"Unknown", "RolloutPaused", "No outdated Node is replaced while spec.rollout.paused is true"}},
		"stopped": {paused: true, status: stopped, want: [3]string{"False", "RolloutStopped",
			"No outdated Node is replaced any more because NodeClaim x has failed. Correct the template, or run \"kubectl karpenter-capi rollout undo general\", or \"rollout resume general\" to try again"}},
	} {
		template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
		template.Spec.Rollout, template.Status.Rollout = &v1alpha1.Rollout{Paused: &tc.paused}, tc.status
		SetCondition(template)
		condition := template.StatusConditions().Get(v1alpha1.ConditionRolloutProgressing)
		if diff := cmp.Diff(tc.want, [3]string{string(condition.Status), condition.Reason, condition.Message}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
