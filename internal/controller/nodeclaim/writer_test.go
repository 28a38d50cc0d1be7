// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-capi/karpenter-capi/internal/lifecycle"
)

// While the link of one claim is being written, others are linked, and neither its claim nor its
// Machine is linked a second time.
func TestNoLinkWaitsForAnother(t *testing.T) {
	w := newWorld(launched("a"), machine("m1"))
	r := w.newProcess() // its caches have goroutines that do not end
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		var mu sync.Mutex
		written := map[string]int{}
		w.patch = func(machine string, do func() error) error {
			mu.Lock()
			written[machine]++
			mu.Unlock()
			if machine == "m1" {
				<-answer
			}
			return do()
		}
		r.writer = newWriter()
		// reconciled reconciles, and waits until all links that it has started wait for an answer or have ended.
		reconciled := func() {
			if err := reconcileOnce(t, r); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		reconciled()
		if err := w.api.Create(t.Context(), launched("b")); err != nil {
			t.Fatal(err)
		}
		if err := w.api.Create(t.Context(), machine("m2")); err != nil {
			t.Fatal(err)
		}
		reconciled()
		if uid := lifecycle.ClaimUID(w.machine(t, "m2")); uid != "b" {
			t.Errorf("Machine m2 is linked to %q, want b", uid)
		}
		reconciled()
		close(answer)
		synctest.Wait()
		if uid := lifecycle.ClaimUID(w.machine(t, "m1")); uid != "a" || len(r.writer.busy(resourceName)) > 0 {
			t.Errorf("Machine m1 is linked to %q, want a", uid)
		}
		if written["m1"] != 1 || written["m2"] != 1 {
			t.Errorf("got %v writes of Machines, want one of each", written)
		}
		for range written["m1"] + written["m2"] {
			<-r.writer.ended
		}
	})
}

// The end of a link triggers the next reconcile of its resource, which tries again if the link could not
// be written. It waits longer after each error, and not after a conflict.
func TestFailedLinksAreTriedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		answer error
		waits  bool
	}{
		"an error":   {answer: apierrors.NewServiceUnavailable("no"), waits: true},
		"a conflict": {answer: apierrors.NewConflict(machinesResource, "m1", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(launched("a"), machine("m1"))
			fail := tc.answer
			w.patch = func(_ string, do func() error) error {
				if fail != nil {
					return fail
				}
				return do()
			}
			r := w.newProcess()
			r.writer = newWriter()
			for range 3 {
				if err := reconcileOnce(t, r); err != nil {
					t.Fatal(err)
				}
				if e := <-r.writer.ended; e.Object != resourceName {
					t.Fatalf("got an event of %s", e.Object)
				}
			}
			if got := r.writer.retry.NumRequeues(types.UID("a")) > 0; got != tc.waits {
				t.Errorf("waits longer each time: %t", got)
			}
			fail = nil
			if err := reconcileOnce(t, r); err != nil {
				t.Fatal(err)
			}
			<-r.writer.ended
			if uid := lifecycle.ClaimUID(w.machine(t, "m1")); uid != "a" {
				t.Errorf("Machine m1 is linked to %q, want a", uid)
			}
		})
	}
}

// More links than are written at once end, too.
func TestManyLinks(t *testing.T) {
	w := newWriter()
	for range 2 * writers {
		w.start(t.Context(), resourceName, "a", "m", func(context.Context) error { return nil })
	}
	for range 2 * writers {
		<-w.ended
	}
}
