// SPDX-License-Identifier: Apache-2.0

package scalable

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// A generated MachineDeployment is suspended while it has Machines in a MachineSet that is not its current one, and
// says what to do. The tests are in the order of an edit that is undone.
func TestChanged(t *testing.T) {
	const undo, remain, wait = "Undo the change", "Delete these Machines", "has not chosen its current MachineSet yet"
	start := metav1.NewTime(fixture.Noon)
	later := func(minutes int) metav1.Time {
		return metav1.NewTime(start.Add(time.Duration(minutes) * time.Minute))
	}
	deployment := func(version string, change ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
		d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "general", Generation: 2}}
		d.Spec.Template.Spec.Version, d.Status.ObservedGeneration = version, 2
		for _, change := range change {
			change(d)
		}
		return d
	}
	rolled := func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.After = later(1) }
	unseen := func(d *clusterv1.MachineDeployment) { d.Status.ObservedGeneration = 1 }
	ending := func(d *clusterv1.MachineDeployment) { d.DeletionTimestamp, d.Finalizers = &start, []string{"x"} }
	adopted := func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{v1alpha1.AdoptedAnnotation: timestamp.Format(fixture.Noon)}
	}
	referring := func(d *clusterv1.MachineDeployment) {
		d.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "K", Name: "other"}
		d.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{Kind: "B", Name: "b"}
		d.Spec.Template.Spec.Bootstrap.DataSecretName = new("s")
		d.Spec.Template.Spec.FailureDomain = "a"
		d.Spec.Template.Labels = map[string]string{"does not": "matter"}
	}
	set := func(name, version string, replicas int32, created metav1.Time, old bool) *clusterv1.MachineSet {
		s := fixture.MachineSet(name, "general", replicas)
		s.CreationTimestamp, s.Spec.Template.Spec.Version = created, version
		if old {
			s.Annotations = map[string]string{clusterv1.DisableMachineCreateAnnotation: "true"}
		}
		return s
	}
	counting := func(s *clusterv1.MachineSet) *clusterv1.MachineSet { s.Status.Replicas = new(int32(1)); return s }
	deleted := func(s *clusterv1.MachineSet) *clusterv1.MachineSet {
		s.DeletionTimestamp, s.Finalizers = &start, []string{clusterv1.MachineSetFinalizer}
		return s
	}
	type sets = []client.Object
	for name, tc := range map[string]struct {
		deployment *clusterv1.MachineDeployment
		sets       sets
		want       []string // all that the text must have; nil if it is not suspended
	}{
		"none yet":                    {deployment: deployment("v1")},
		"one":                         {deployment: deployment("v1"), sets: sets{set("a", "v1", 2, start, false)}},
		"one that is being deleted":   {deployment: deployment("v1"), sets: sets{deleted(set("a", "v1", 2, start, false))}},
		"an older one that is empty":  {deployment: deployment("v2"), sets: sets{set("a", "v1", 0, start, true), set("b", "v2", 2, later(2), false)}},
		"changed, and empty":          {deployment: deployment("v2"), sets: sets{set("a", "v1", 0, start, false)}},
		"adopted":                     {deployment: deployment("v2", adopted), sets: sets{set("a", "v1", 1, start, true), set("b", "v2", 1, later(2), false)}},
		"changed, and being deleted":  {deployment: deployment("v2", ending), sets: sets{set("a", "v1", 2, start, false)}},
		"changed, before it is seen":  {deployment: deployment("v2", unseen), sets: sets{set("a", "v1", 2, start, false)}, want: []string{"clusters/general", undo, `spec.template.spec.version is "v2" instead of "v1"`}},
		"none is marked":              {deployment: deployment("v2"), sets: sets{set("a", "v1", 2, start, false), set("b", "v2", 0, later(2), false)}, want: []string{undo, "version"}},
		"the older one is marked":     {deployment: deployment("v2"), sets: sets{set("a", "v1", 2, start, true), set("b", "v2", 0, later(2), false)}, want: []string{undo, "version"}},
		"it still counts a Machine":   {deployment: deployment("v2"), sets: sets{counting(set("a", "v1", 0, start, true)), set("b", "v2", 0, later(2), false)}, want: []string{undo, "version"}},
		"the older one is deleted":    {deployment: deployment("v2"), sets: sets{deleted(set("a", "v1", 2, start, true)), set("b", "v2", 0, later(2), false)}, want: []string{undo, "version"}},
		"undone, before it is seen":   {deployment: deployment("v1", unseen), sets: sets{set("a", "v1", 2, start, true), set("b", "v2", 0, later(2), false)}, want: []string{wait}},
		"undone, and all is marked":   {deployment: deployment("v1"), sets: sets{set("a", "v1", 2, start, false), set("b", "v2", 0, later(2), true)}},
		"undone, and Machines remain": {deployment: deployment("v1"), sets: sets{set("b", "v2", 1, later(2), true), set("a", "v1", 2, start, false)}, want: []string{remain, "MachineSet b"}},
		"all other fields": {deployment: deployment("v1", referring), sets: sets{set("a", "v1", 2, start, false)}, want: []string{undo,
			`failureDomain is "a" instead of ""`, `infrastructureRef is "K other" instead of ""`, `bootstrap.configRef is "B b" instead of ""`, `bootstrap.dataSecretName is "s" instead of ""`}},

		"a rollout is requested, before it is seen": {deployment: deployment("v1", rolled, unseen), sets: sets{set("a", "v1", 2, start, false)}},
		"a rollout, none is marked":                 {deployment: deployment("v1", rolled), sets: sets{set("a", "v1", 2, start, false), set("b", "v1", 0, later(2), false)}, want: []string{undo, "spec.rollout.after is set"}},
		"a rollout, and the older one is marked":    {deployment: deployment("v1", rolled), sets: sets{set("a", "v1", 2, start, true), set("b", "v1", 0, later(2), false)}, want: []string{undo, "spec.rollout.after is set"}},
		"no rollout any more, before it is seen":    {deployment: deployment("v1", unseen), sets: sets{set("a", "v1", 2, start, true), set("b", "v1", 0, later(2), false)}, want: []string{wait}},
		"no rollout any more":                       {deployment: deployment("v1"), sets: sets{set("a", "v1", 2, start, false), set("b", "v1", 0, later(2), true)}},
		"no rollout, and the newer one is chosen":   {deployment: deployment("v1"), sets: sets{set("a", "v1", 1, start, true), set("b", "v1", 2, later(2), false)}, want: []string{remain, "MachineSet a"}},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := fixture.Clusters(tc.sets...)
			got, err := Changed(t.Context(), clusters, New(tc.deployment))
			lacks := slices.ContainsFunc(tc.want, func(text string) bool { return !strings.Contains(got, text) })
			if err != nil || (got == "") != (tc.want == nil) || lacks {
				t.Errorf("got %q (%v), want %v", got, err, tc.want)
			}
			suspended, err := New(tc.deployment).Suspended(t.Context(), clusters)
			if want := tc.want != nil || Adopted(tc.deployment); err != nil || suspended != want {
				t.Errorf("suspended: %t (%v), want %t", suspended, err, want)
			}
		})
	}
}
