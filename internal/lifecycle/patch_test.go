// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
	"github.com/karpenter-capi/karpenter-capi/internal/timestamp"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// writes are the writes of the package, each on a Machine for which it is meant.
var writes = map[string]struct {
	machine func(*clusterv1.Machine)
	do      func(context.Context, client.Client, *clusterv1.Machine) error
}{
	"link": {func(*clusterv1.Machine) {}, func(ctx context.Context, c client.Client, m *clusterv1.Machine) error {
		_, err := lifecycle.Link(ctx, c, m, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c"}}, nil)
		return err
	}},
	"unlink": {linkTo("c"), func(ctx context.Context, c client.Client, m *clusterv1.Machine) error {
		return lifecycle.Unlink(ctx, c, m, fixture.Noon)
	}},
	"mark": {linkTo("c"), func(ctx context.Context, c client.Client, m *clusterv1.Machine) error {
		return lifecycle.Mark(ctx, c, m, fixture.Noon, true)
	}},
	"mark undrained": {linkTo("c"), func(ctx context.Context, c client.Client, m *clusterv1.Machine) error {
		return lifecycle.Mark(ctx, c, m, fixture.Noon, false)
	}},
	"skip the drain": {mark, lifecycle.SkipDrain},
	"remove hooks": {linkTo("c"), func(ctx context.Context, c client.Client, m *clusterv1.Machine) error {
		return lifecycle.RemoveHooks(ctx, c, m)
	}},
}

func linkTo(claim string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		m.Labels[v1alpha1.NodeClaimUIDLabel] = claim
		m.Annotations[v1alpha1.NodeClaimAnnotation], m.Annotations[v1alpha1.DrainHookAnnotation] = claim, ""
	}
}

func mark(m *clusterv1.Machine) {
	m.Annotations[v1alpha1.MarkedForDeletionAtAnnotation] = timestamp.Format(fixture.Noon)
}

func unlink(m *clusterv1.Machine) {
	delete(m.Labels, v1alpha1.NodeClaimUIDLabel)
	delete(m.Annotations, v1alpha1.NodeClaimAnnotation)
	m.Annotations[v1alpha1.SpareSinceAnnotation] = timestamp.Format(fixture.Noon)
}

// A write conflicts with exactly those changes on which its decision depends.
func TestConflicts(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*clusterv1.Machine)
		deleted bool
		again   bool
		// conflicts are the writes that must not be applied after the change.
		conflicts []string
	}{
		"another controller's annotation":       {change: func(m *clusterv1.Machine) { m.Annotations["theirs"] = "x" }},
		"another controller's label":            {change: func(m *clusterv1.Machine) { m.Labels["theirs"] = "x" }},
		"a finalizer":                           {change: func(m *clusterv1.Machine) { m.Finalizers = append(m.Finalizers, "theirs") }},
		"a provider ID":                         {change: func(m *clusterv1.Machine) { m.Spec.ProviderID = "sim://m" }},
		"a condition":                           {change: func(m *clusterv1.Machine) { m.Status.Phase = "Provisioned" }},
		"a link":                                {change: linkTo("other"), conflicts: []string{"link", "mark", "mark undrained", "unlink"}},
		"a link that was removed":               {change: unlink, conflicts: []string{"link", "mark", "mark undrained", "unlink"}},
		"a mark":                                {change: func(m *clusterv1.Machine) { m.Annotations[v1alpha1.MarkedForDeletionAtAnnotation] = "x" }, conflicts: []string{"link", "mark", "mark undrained", "skip the drain", "unlink"}},
		"a Node":                                {change: func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }, conflicts: []string{"mark", "unlink"}},
		"its deletion":                          {deleted: true, conflicts: []string{"link", "mark", "mark undrained", "unlink"}},
		"another Machine of its name":           {again: true, conflicts: []string{"link", "mark", "mark undrained", "remove hooks", "skip the drain", "unlink"}},
		"the loss of the hook before a removal": {change: func(m *clusterv1.Machine) { delete(m.Annotations, v1alpha1.DrainHookAnnotation) }, conflicts: []string{"mark", "mark undrained", "remove hooks"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, write := range slices.Sorted(maps.Keys(writes)) {
				machine := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
				machine.Annotations = map[string]string{"mine": "x", v1alpha1.DrainHookAnnotation: ""}
				machine.Finalizers, machine.Status.Phase = []string{clusterv1.MachineFinalizer}, "Pending"
				writes[write].machine(machine)
				management := fixture.Clusters(machine).Management.GetClient()
				read := fresh(t, management, machine)
				changed := read.DeepCopy()
				if tc.change != nil {
					tc.change(changed)
				}
				if tc.again {
					changed.UID = "again"
				}
				changed.ResourceVersion = ""
				if tc.deleted {
					changed.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
				}
				management = fixture.Clusters(changed).Management.GetClient()
				before := fresh(t, management, machine)
				err := writes[write].do(t.Context(), management, read)
				if err != nil && !apierrors.IsConflict(err) {
					t.Errorf("%s: %v", write, err)
				}
				if err == nil {
					continue
				}
				got = append(got, write)
				if diff := cmp.Diff(before, fresh(t, management, machine)); diff != "" {
					t.Errorf("%s conflicts, and has written (-before +after):\n%s", write, diff)
				}
			}
			if diff := cmp.Diff(tc.conflicts, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
		})
	}
}

// Only the Machine that was read is deleted, once, and it loses its hooks.
func TestDelete(t *testing.T) {
	for name, tc := range map[string]struct {
		again, deleting bool
		// want is whether the Machine is being deleted, and has hooks.
		wantDeleting, wantHooks bool
	}{
		"the same":                    {wantDeleting: true},
		"it is being deleted":         {deleting: true, wantDeleting: true},
		"another Machine of its name": {again: true, wantHooks: true},
	} {
		t.Run(name, func(t *testing.T) {
			machine := fixture.OfMachineDeployment(fixture.Machine(time.Minute))
			machine.Annotations = map[string]string{v1alpha1.DrainHookAnnotation: "", v1alpha1.TerminateHookAnnotation: ""}
			machine.Finalizers = []string{clusterv1.MachineFinalizer}
			if tc.deleting {
				machine.DeletionTimestamp = new(metav1.NewTime(fixture.Noon))
			}
			read := machine.DeepCopy()
			if tc.again {
				machine.UID = "again"
			}
			deletions := 0
			management := interceptor.NewClient(fixture.Clusters(machine).Management.GetClient().(client.WithWatch), interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
					deletions++
					return c.Delete(ctx, object, options...)
				},
			})
			if err := lifecycle.Delete(t.Context(), management, read); apierrors.IsConflict(err) != tc.again || err != nil && !tc.again {
				t.Errorf("got %v, want a conflict: %t", err, tc.again)
			}
			after := fresh(t, management, machine)
			if deleting := !after.DeletionTimestamp.IsZero(); deleting != tc.wantDeleting || lifecycle.HasHooks(after) != tc.wantHooks {
				t.Errorf("it is being deleted: %t, want %t; it has hooks: %t, want %t", deleting, tc.wantDeleting, lifecycle.HasHooks(after), tc.wantHooks)
			}
			if (deletions > 0) == tc.deleting {
				t.Errorf("it is deleted %d times", deletions)
			}
		})
	}
}
