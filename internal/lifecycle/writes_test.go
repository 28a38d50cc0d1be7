// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// Each write changes its own labels and annotations, and leaves all others as they are.
func TestWhatIsWritten(t *testing.T) {
	type entries = map[string]string
	noon, before := timestamp.Format(fixture.Noon), timestamp.Format(fixture.Noon.Add(-time.Minute))
	linked := entries{"mine": "x", v1alpha1.NodeClaimAnnotation: "claim", v1alpha1.DrainHookAnnotation: ""}
	marked := entries{"mine": "x", v1alpha1.NodeClaimAnnotation: "claim", v1alpha1.MarkedForDeletionAtAnnotation: noon, clusterv1.DeleteMachineAnnotation: ""}
	drained := entries{clusterv1.ExcludeNodeDrainingAnnotation: "", clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation: ""}
	mark := func(drained bool) func(*testing.T, client.Client, *clusterv1.Machine) {
		return func(t *testing.T, c client.Client, machine *clusterv1.Machine) {
			t.Helper()
			if err := lifecycle.Mark(t.Context(), c, machine, fixture.Noon, drained); err != nil {
				t.Fatal(err)
			}
		}
	}
	skipDrain := func(t *testing.T, c client.Client, machine *clusterv1.Machine) {
		t.Helper()
		if err := lifecycle.SkipDrain(t.Context(), c, machine); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(drained)), slices.Sorted(slices.Values(lifecycle.DrainAnnotations))); diff != "" {
		t.Errorf("annotations that leave out the drain (-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		linked, node, deleting bool
		unwritten              bool
		annotations            entries
		do                     func(*testing.T, client.Client, *clusterv1.Machine)
		wantUID, wantLabel     string
		want                   entries
	}{
		"link": {
			annotations: entries{"mine": "x", v1alpha1.SpareSinceAnnotation: before},
			do: func(t *testing.T, c client.Client, machine *clusterv1.Machine) {
				t.Helper()
				claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", UID: "c"}}
				returned, err := lifecycle.Link(t.Context(), c, machine, claim, entries{v1alpha1.TemplateLabel: "general"})
				if err != nil {
					t.Fatal(err)
				}
				if lifecycle.ClaimUID(returned) != "c" || lifecycle.ClaimName(returned) != "claim" || returned.ResourceVersion != fresh(t, c, machine).ResourceVersion {
					t.Errorf("it is not returned as the API server has it: %+v", returned.ObjectMeta)
				}
			},
			wantUID: "c", wantLabel: "general", want: linked,
		},
		"unlink": {
			linked: true, annotations: linked,
			do: func(t *testing.T, c client.Client, machine *clusterv1.Machine) {
				t.Helper()
				if err := lifecycle.Unlink(t.Context(), c, machine, fixture.Noon); err != nil {
					t.Fatal(err)
				}
				if since := lifecycle.SpareSince(fresh(t, c, machine)); !since.Equal(fixture.Noon) {
					t.Errorf("it is spare since %s", since)
				}
			},
			want: entries{"mine": "x", v1alpha1.DrainHookAnnotation: "", v1alpha1.SpareSinceAnnotation: noon},
		},
		"mark, to be drained by Cluster API":         {linked: true, node: true, annotations: linked, do: mark(false), wantUID: "c", want: marked},
		"mark, drained by Karpenter":                 {linked: true, node: true, annotations: linked, do: mark(true), wantUID: "c", want: lo.Assign(marked, drained)},
		"mark, without a Node":                       {linked: true, annotations: linked, do: mark(true), wantUID: "c", want: lo.Assign(marked, drained)},
		"mark what is being deleted: its hook stays": {linked: true, node: true, deleting: true, annotations: linked, do: mark(false), wantUID: "c", want: lo.Assign(marked, entries{v1alpha1.DrainHookAnnotation: ""})},
		"mark again, which changes nothing":          {linked: true, node: true, unwritten: true, annotations: lo.Assign(linked, entries{v1alpha1.MarkedForDeletionAtAnnotation: before}), do: mark(true), wantUID: "c", want: lo.Assign(linked, entries{v1alpha1.MarkedForDeletionAtAnnotation: before})},
		"end the drain": {
			linked: true, node: true, deleting: true, annotations: marked, do: skipDrain, wantUID: "c", want: lo.Assign(marked, drained),
		},
		"end the drain again, which changes nothing": {
			linked: true, node: true, deleting: true, annotations: lo.Assign(marked, drained), unwritten: true, do: skipDrain, wantUID: "c", want: lo.Assign(marked, drained),
		},
	} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.OfMachineDeployment(fixture.Machine(time.Hour))
			machine.Finalizers, machine.Annotations, machine.Status.Phase = []string{clusterv1.MachineFinalizer}, tc.annotations, "Running"
			if tc.linked {
				machine.Labels[v1alpha1.NodeClaimUIDLabel] = "c"
			}
			if tc.node {
				machine.Status.NodeRef.Name = "node"
			}
			if tc.deleting {
				machine.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
			}
			management := fixture.Clusters(machine).Management.GetClient()
			before := fresh(t, management, machine)
			tc.do(t, management, before.DeepCopy())
			after := fresh(t, management, machine)
			if tc.unwritten && after.ResourceVersion != before.ResourceVersion {
				t.Error("it is written without a change")
			}
			if diff := cmp.Diff(tc.want, after.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if string(lifecycle.ClaimUID(after)) != tc.wantUID || after.Labels[v1alpha1.TemplateLabel] != tc.wantLabel || after.Labels[clusterv1.MachineDeploymentNameLabel] != "general" {
				t.Errorf("got labels %v", after.Labels)
			}
			for key, value := range after.Annotations {
				if _, err := time.Parse(time.RFC3339, value); (err == nil) != slices.Contains(lifecycle.Timestamps, key) {
					t.Errorf("annotation %s, with %q, is in Timestamps: %t", key, value, slices.Contains(lifecycle.Timestamps, key))
				}
			}
		})
	}
}

// What a Machine shows of its life, also if a user has spoiled it.
func TestReads(t *testing.T) {
	type entries = map[string]string
	type facts struct {
		Leaving, Marked, Moved, HasSpareTime, HasHooks, Holds bool
		LeavingSince, SpareSince                              time.Duration // before noon
	}
	ago := func(d time.Duration) string { return timestamp.Format(fixture.Noon.Add(-d)) }
	for name, tc := range map[string]struct {
		annotations entries
		deleting    bool // for two minutes
		want        facts
	}{
		"created an hour ago":             {want: facts{SpareSince: time.Hour}},
		"unlinked a minute ago":           {annotations: entries{v1alpha1.SpareSinceAnnotation: ago(time.Minute)}, want: facts{HasSpareTime: true, SpareSince: time.Minute}},
		"unlinked, and spoiled":           {annotations: entries{v1alpha1.SpareSinceAnnotation: "x"}, want: facts{HasSpareTime: true, SpareSince: time.Hour}},
		"unlinked, and emptied":           {annotations: entries{v1alpha1.SpareSinceAnnotation: ""}, want: facts{SpareSince: time.Hour}},
		"marked":                          {annotations: entries{v1alpha1.MarkedForDeletionAtAnnotation: ago(time.Minute)}, want: facts{Leaving: true, Marked: true, LeavingSince: time.Minute, SpareSince: time.Hour}},
		"marked, and spoiled":             {annotations: entries{v1alpha1.MarkedForDeletionAtAnnotation: "x"}, want: facts{Leaving: true, Marked: true, SpareSince: time.Hour}},
		"deleted":                         {deleting: true, want: facts{Leaving: true, LeavingSince: 2 * time.Minute, SpareSince: time.Hour}},
		"deleted, and marked since":       {deleting: true, annotations: entries{v1alpha1.MarkedForDeletionAtAnnotation: ago(time.Minute)}, want: facts{Leaving: true, Marked: true, LeavingSince: time.Minute, SpareSince: time.Hour}},
		"deleted by clusterctl":           {deleting: true, annotations: entries{clusterctlv1.DeleteForMoveAnnotation: ""}, want: facts{Leaving: true, Moved: true, LeavingSince: 2 * time.Minute, SpareSince: time.Hour}},
		"linked":                          {annotations: entries{v1alpha1.DrainHookAnnotation: ""}, want: facts{HasHooks: true, SpareSince: time.Hour}},
		"linked, of a pool":               {annotations: entries{v1alpha1.DrainHookAnnotation: "", v1alpha1.TerminateHookAnnotation: ""}, want: facts{HasHooks: true, Holds: true, SpareSince: time.Hour}},
		"with the hook of its pool alone": {annotations: entries{v1alpha1.TerminateHookAnnotation: ""}, want: facts{HasHooks: true, Holds: true, SpareSince: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.Machine(time.Hour)
			machine.Annotations = tc.annotations
			if tc.deleting {
				machine.DeletionTimestamp = new(metav1.NewTime(fixture.Noon.Add(-2 * time.Minute)))
			}
			got := facts{
				Leaving: lifecycle.IsLeaving(machine), Marked: lifecycle.IsMarked(machine), Moved: lifecycle.IsMoved(machine),
				HasSpareTime: lifecycle.HasSpareTime(machine), HasHooks: lifecycle.HasHooks(machine), Holds: lifecycle.HoldsInstance(machine),
				LeavingSince: fixture.Noon.Sub(lifecycle.LeavingSince(machine, fixture.Noon)), SpareSince: fixture.Noon.Sub(lifecycle.SpareSince(machine)),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
