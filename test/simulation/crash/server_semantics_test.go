// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestServer checks the behavior of the server that the search relies on.
func TestServer(t *testing.T) {
	ctx := context.Background()
	for name, test := range map[string]struct {
		// write changes a Machine with generation 1 that was read as before.
		write func(c live, before, machine *clusterv1.Machine) error
		// stale is whether another client has written since.
		stale    bool
		conflict bool
		events   int
		check    func(after *clusterv1.Machine) bool
	}{
		"a patch merges": {
			write: func(c live, before, m *clusterv1.Machine) error {
				m.Labels = map[string]string{"b": "2"}
				return c.Patch(ctx, m, client.MergeFrom(before))
			},
			events: 1,
			check: func(m *clusterv1.Machine) bool {
				return len(m.Labels) == 1 && m.Labels["b"] == "2" && m.Generation == 1 && m.Spec.ClusterName == "prod"
			},
		},
		"a patch without a lock is applied to the current object": {
			write: func(c live, before, m *clusterv1.Machine) error {
				m.Labels["b"] = "2"
				return c.Patch(ctx, m, client.MergeFrom(before))
			},
			stale:  true,
			events: 1,
			check:  func(m *clusterv1.Machine) bool { return m.Labels["b"] == "2" && m.Annotations["by"] == "another" },
		},
		"a patch with a lock is rejected": {
			write: func(c live, before, m *clusterv1.Machine) error {
				m.Labels["b"] = "2"
				return c.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
			},
			stale: true, conflict: true,
		},
		"a patch without a change causes no event": {
			write: func(c live, before, m *clusterv1.Machine) error { return c.Patch(ctx, m, client.MergeFrom(before)) },
		},
		"a spec has a generation": {
			write: func(c live, before, m *clusterv1.Machine) error {
				m.Spec.ProviderID = "x"
				return c.Patch(ctx, m, client.MergeFrom(before))
			},
			events: 1,
			check:  func(m *clusterv1.Machine) bool { return m.Generation == 2 },
		},
		"a patch does not change the status": {
			write: func(c live, before, m *clusterv1.Machine) error {
				m.Status.Phase = "x"
				return c.Patch(ctx, m, client.MergeFrom(before))
			},
		},
		"a patch of the status changes nothing else": {
			write: func(c live, before, m *clusterv1.Machine) error {
				m.Status.Phase, m.Labels["b"] = "x", "2"
				return c.Status().Patch(ctx, m, client.MergeFrom(before))
			},
			events: 1,
			check: func(m *clusterv1.Machine) bool {
				return m.Status.Phase == "x" && m.Labels["b"] == "" && m.Generation == 1
			},
		},
		"a deleted object with a finalizer stays": {
			write: func(c live, _, m *clusterv1.Machine) error {
				return c.Delete(ctx, m, client.Preconditions{UID: &m.UID})
			},
			events: 1,
			check:  func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() },
		},
		"and has one deletion event": {
			write: func(c live, _, m *clusterv1.Machine) error {
				_ = c.Delete(ctx, m)
				return c.Delete(ctx, m)
			},
			events: 1,
			check:  func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() },
		},
		"and is removed with its last finalizer": {
			write: func(c live, before, m *clusterv1.Machine) error {
				_ = c.Delete(ctx, m)
				m.Finalizers = nil
				return c.Patch(ctx, m, client.MergeFrom(before))
			},
			events: 2,
			check:  func(m *clusterv1.Machine) bool { return m == nil },
		},
		"another UID is not deleted": {
			write: func(c live, _, m *clusterv1.Machine) error {
				uid := types.UID("another")
				return c.Delete(ctx, m, client.Preconditions{UID: &uid})
			},
			conflict: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(clocktesting.NewFakeClock(time.Unix(0, 0)))
			c := live{server: s}
			must(c.Create(ctx, &clusterv1.Machine{
				ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: map[string]string{"a": "1"}, Finalizers: []string{"f"}},
				Spec:       clusterv1.MachineSpec{ClusterName: "prod"},
			}))
			before := &clusterv1.Machine{}
			must(c.Get(ctx, client.ObjectKey{Name: "m"}, before))
			if test.stale {
				current := before.DeepCopy()
				current.Annotations = map[string]string{"by": "another"}
				must(c.Update(ctx, current))
			}
			events := len(s.log["Machine"])
			if err := test.write(c, before, before.DeepCopy()); apierrors.IsConflict(err) != test.conflict || err != nil && !test.conflict {
				t.Errorf("got error %v, want a conflict: %t", err, test.conflict)
			}
			if got := len(s.log["Machine"]) - events; got != test.events {
				t.Errorf("got %d events, want %d", got, test.events)
			}
			after, _ := s.head["Machine"]["m"].(*clusterv1.Machine)
			if test.check != nil && !test.check(after) {
				t.Errorf("it is now %+v", after)
			}
		})
	}
}

// Runs that have begun with the same objects would otherwise change them for each other, and a cache could not lag behind.
func TestServerKeepsStoredObjects(t *testing.T) {
	s := newServer(clocktesting.NewFakeClock(time.Unix(0, 0)))
	c := live{server: s}
	copied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": infrastructureGroup + "/v1", "kind": instanceKind, "spec": map[string]any{}}}
	copied.SetName("copy")
	must(c.Create(t.Context(), copied))
	stored := s.head[instanceKind]["copy"]
	want := stored.DeepCopyObject()

	changed := copied.DeepCopy()
	changed.SetLabels(map[string]string{"a": "1"})
	must(c.Patch(t.Context(), changed, client.MergeFrom(copied)))
	if !equality.Semantic.DeepEqual(stored, want) {
		t.Errorf("the patch changed the stored object to %+v", stored)
	}
	if after := s.head[instanceKind]["copy"]; after.GetLabels()["a"] != "1" || after.GetResourceVersion() == stored.GetResourceVersion() {
		t.Errorf("it is now %+v, want the label in a new version", after)
	}
	if got := len(s.log[instanceKind]); got != 2 {
		t.Errorf("got %d events, want 2", got)
	}
}
