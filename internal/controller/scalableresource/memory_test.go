// SPDX-License-Identifier: Apache-2.0

package scalableresource

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a process remembers of a resource is dropped with it.
func TestMemoryEndsWithItsResource(t *testing.T) {
	w := newWorld(launched("a"))
	r := w.newProcess()
	if err := reconcileOnce(t, r); err != nil {
		t.Fatal(err)
	}
	if len(r.memory.resources) != 1 {
		t.Fatalf("got %d resources, want 1", len(r.memory.resources))
	}
	resource := &clusterv1.MachineDeployment{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: resourceName}, resource); err != nil {
		t.Fatal(err)
	}
	w.remove(t, w.claim(t, "a"))
	if err := w.api.Delete(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
	if err := reconcileOnce(t, r); err != nil {
		t.Fatal(err)
	}
	if len(r.memory.resources) != 0 {
		t.Errorf("got %d resources, want none", len(r.memory.resources))
	}
}
