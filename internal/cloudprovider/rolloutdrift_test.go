// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/drift"
)

// An outdated claim of a template with a rollout is drifted only if the rollout to what the template generates now allows it.
func TestIsDriftedDuringRollout(t *testing.T) {
	const drifted = v1alpha1.DriftInfrastructure
	for name, tc := range map[string]struct {
		step   v1alpha1.RolloutStep // empty if the status has no rollout
		canary types.UID
		paused bool
		again  bool // whether the base is edited again
		want   cloudprovider.DriftReason
	}{
		"the rollout has not begun":              {},
		"the claim is the canary":                {step: v1alpha1.RolloutCanary, canary: "mine", want: drifted},
		"the claim is the canary during a pause": {step: v1alpha1.RolloutCanary, canary: "mine", paused: true},
		"the base is edited again":               {step: v1alpha1.RolloutCanary, canary: "mine", again: true},
		"another claim is the canary":            {step: v1alpha1.RolloutCanary, canary: "other"},
		"the new Nodes are observed":             {step: v1alpha1.RolloutSoaking},
		"the others are replaced":                {step: v1alpha1.RolloutRolling, want: drifted},
		"the rollout has stopped":                {step: v1alpha1.RolloutStopped},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDriftWorldOf(t, func(template *v1alpha1.KarpenterMachineTemplate, _ *v1alpha1.InstanceTypeCatalog) {
				template.Spec.Rollout = &v1alpha1.Rollout{Paused: &tc.paused}
			})
			w.claim.UID = "mine"
			before := w.revision(t)
			w.editBase(t, "ami-2")
			revision := w.revision(t)
			if before == revision {
				t.Error("another content has the same revision")
			}
			if tc.step != "" {
				w.edit(t, func(template *v1alpha1.KarpenterMachineTemplate) {
					template.Status.Rollout = &v1alpha1.RolloutStatus{Step: tc.step, Revision: revision}
					if tc.canary != "" {
						template.Status.Rollout.Canary = []v1alpha1.RolloutNodeClaim{{Name: string(tc.canary), UID: string(tc.canary)}}
					}
				})
			}
			if tc.again {
				w.editBase(t, "ami-3")
			}
			if got, err := w.provider.IsDrifted(t.Context(), w.claim); err != nil || got != tc.want {
				t.Errorf("got %q and %v, want %q", got, err, tc.want)
			}
		})
	}
}

// The revision follows what machines are generated from, and nothing else.
func TestRolloutRevision(t *testing.T) {
	w := newDriftWorld(t)
	before := w.revision(t)
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KarpenterMachineTemplate)
		want   bool // whether it is another one
	}{
		"a label": {change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Spec.Template.Metadata.Labels = map[string]v1alpha1.LabelValue{"a": "b"}
		}},
		"a limit":   {change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.MaxMachines = new(int32(9)) }},
		"a rollout": {change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Rollout = &v1alpha1.Rollout{} }},
		"turns": {change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Spec.Spread = []v1alpha1.Spread{{CapacityType: "spot", MaxPriceIncreasePercent: new(int32(20))}}
		}},
		"the same version": {change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Template.Spec.Version = "v1.36.3" }},
		"another version":  {want: true, change: func(t *v1alpha1.KarpenterMachineTemplate) { t.Spec.Template.Spec.Version = "v1.36.2" }},
		"another kubelet": {want: true, change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Spec.Kubelet = &v1alpha1.KubeletConfiguration{MaxPods: new(int32(9))}
		}},
		"a patch": {want: true, change: func(t *v1alpha1.KarpenterMachineTemplate) {
			t.Spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTargetInfrastructure, JSONPatches: []v1alpha1.JSONPatch{{Op: "remove", Path: "/spec/template/spec/none"}}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDriftWorld(t)
			w.edit(t, tc.change)
			if got := w.revision(t); (got != before) != tc.want {
				t.Errorf("got %s, before it was %s, want another one: %t", got, before, tc.want)
			}
		})
	}
}

// revision returns the revision of what the template generates now.
func (w *driftWorld) revision(t *testing.T) string {
	t.Helper()
	template := &v1alpha1.KarpenterMachineTemplate{}
	w.get(t, "general", template)
	answers, decided, err := drift.Of(t.Context(), w.provider.clusters, w.provider.catalog, template)
	if err != nil || !decided {
		t.Fatalf("nothing is decided: %v", err)
	}
	revision, err := answers.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return revision
}
