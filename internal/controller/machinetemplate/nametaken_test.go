// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/generate"
)

// If the hashes in the names of two offerings are equal, the second one to come is an error on the template, and
// nothing is launched with it: it would get the other's machines.
func TestNameOfAnotherOffering(t *testing.T) {
	for name, tc := range map[string]struct {
		hash  string // of the MachineDeployment that has the name
		taken bool
	}{
		"another offering":  {hash: "another", taken: true},
		"the same offering": {},
	} {
		t.Run(name, func(t *testing.T) {
			template := newTemplate()
			c := newCell(template)
			known := catalog.New(c.clusters)
			launch := func() (*generate.Launch, error) {
				return generate.LaunchOf(t.Context(), c.clusters, known, template, catalog.Key{InstanceType: "m5", Zone: "a", CapacityType: "on-demand"})
			}
			before, err := launch()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := c.reconcile(t, template.Name); err != nil || !got.StatusConditions().Root().IsTrue() {
				t.Fatalf("got %v and %+v, want Ready", err, got.StatusConditions().Root())
			}

			existing := before.Generated.Resource.API().DeepCopyObject().(*clusterv1.MachineDeployment)
			existing.Finalizers = nil
			if tc.hash != "" {
				existing.Labels[v1alpha1.TemplateHashLabel] = tc.hash
			}
			if err := c.Create(t.Context(), existing); err != nil {
				t.Fatal(err)
			}
			const says = "was generated from something else"
			if _, err = launch(); errors.As(err, &generate.UnlaunchableError{}) != tc.taken || tc.taken && !strings.Contains(err.Error(), says) {
				t.Errorf("launch: got %v", err)
			}
			got, err := c.reconcile(t, template.Name)
			if err != nil {
				t.Fatal(err)
			}
			ready := got.StatusConditions().Root()
			if ready.IsTrue() == tc.taken || tc.taken && (ready.Reason != v1alpha1.ReasonNameTaken || !strings.Contains(ready.Message, says) || !strings.Contains(ready.Message, existing.Name)) {
				t.Errorf("got %+v", ready)
			}
			if !tc.taken {
				return
			}
			if err := c.Delete(t.Context(), existing); err != nil {
				t.Fatal(err)
			}
			if got, err = c.reconcile(t, template.Name); err != nil || !got.StatusConditions().Root().IsTrue() {
				t.Errorf("after the other was deleted: got %v and %+v, want Ready", err, got.StatusConditions().Root())
			}
		})
	}
}

// If one name becomes free and another is taken at the same time, the template reports the other offering.
func TestAnotherNameIsTaken(t *testing.T) {
	template := newTemplate()
	c := newCell(template, newCatalog("a", "b"))
	known := catalog.New(c.clusters)
	// takenBy returns a MachineDeployment of another offering with the name for a zone.
	takenBy := func(zone string) *clusterv1.MachineDeployment {
		launch, err := generate.LaunchOf(t.Context(), c.clusters, known, template, catalog.Key{InstanceType: "m5", Zone: zone, CapacityType: "on-demand"})
		if err != nil {
			t.Fatal(err)
		}
		other := launch.Generated.Resource.API().DeepCopyObject().(*clusterv1.MachineDeployment)
		other.Labels[v1alpha1.TemplateHashLabel], other.Finalizers = "another", nil
		return other
	}
	first, second := takenBy("a"), takenBy("b")
	invalid := func() []string {
		got, err := c.reconcile(t, template.Name)
		if err != nil || len(got.Status.InvalidOfferings) != 1 {
			t.Fatalf("got %v and %+v, want one reason", err, got.Status.InvalidOfferings)
		}
		return got.Status.InvalidOfferings[0].Examples
	}
	if err := c.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if got := invalid(); !slices.Equal(got, []string{"m5/a/on-demand"}) {
		t.Errorf("got %v, want that of zone a", got)
	}
	if err := errors.Join(c.Delete(t.Context(), first), c.Create(t.Context(), second)); err != nil {
		t.Fatal(err)
	}
	if got := invalid(); !slices.Equal(got, []string{"m5/b/on-demand"}) {
		t.Errorf("got %v, want that of zone b", got)
	}
}
