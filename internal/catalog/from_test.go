// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// What is known for the content that a template has taken from a MachineDeployment does not hold for
// other content of the same generation.
func TestAcceptedOfAnotherFrom(t *testing.T) {
	c, _ := newWorld(t, listed(m5large()))
	with := func(hash string) *v1alpha1.KarpenterMachineTemplate {
		template := known(template("types"), 1)
		template.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: "workers"}
		template.Status.From = &v1alpha1.ObservedMachineTemplate{MachineDeployment: "workers", Hash: hash}
		return template
	}
	c.SetAccepted(with("a"), sets.New(Key{"m5.large", "a", "on-demand"}))
	if !c.Examined(with("a")) || c.Examined(with("b")) {
		t.Errorf("examined: got %t and %t, want only that of the first content", c.Examined(with("a")), c.Examined(with("b")))
	}
	pending := with("a")
	pending.Status.From, pending.Status.AcceptedHash = nil, "a" // its MachineDeployment cannot be used
	if c.Examined(pending) {
		t.Error("a template that is Pending counts as examined")
	}
	types, _, err := c.Types(t.Context(), with("a"))
	if err != nil {
		t.Fatal(err)
	}
	again, _, _ := c.Types(t.Context(), with("a"))
	other, _, _ := c.Types(t.Context(), with("b"))
	if &types[0] != &again[0] || &types[0] == &other[0] {
		t.Error("the types are not those of the content")
	}
}

// Discovery leaves out the MachineDeployment that the template itself follows, because adopting it would
// write to it.
func TestFollowedMachineDeploymentIsNotOffered(t *testing.T) {
	capacity := map[string]string{cpuAnnotation: "2", memoryAnnotation: "4Gi"}
	c, _ := newWorld(t, machineDeployment("followed", capacity), machineDeployment("other", capacity))
	for name, want := range map[string]bool{"followed": false, "other": true} {
		input := known(template(), 1)
		input.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: "followed"}
		input.Spec.Discovery = &v1alpha1.Discovery{MachineDeployments: &v1alpha1.MachineDeploymentDiscovery{}}
		_, offering, err := c.Find(t.Context(), input, Key{name, "", "on-demand"})
		if (err == nil) != want || want && offering.MachineDeployment != name {
			t.Errorf("%s: got %+v and %v", name, offering, err)
		}
	}
}

// A template that follows a MachineDeployment needs no infrastructure of its own: its types have that of the
// MachineDeployment.
func TestTypesOfAFollowingTemplate(t *testing.T) {
	input := template("types")
	input.Spec.Template.Spec.InfrastructureRef = nil
	input.Spec.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: "workers"}
	if types, problems := TypesOf(input, nil, listed(m5large())); len(types) != 1 || len(problems) > 0 {
		t.Errorf("got %d types and %v", len(types), problems)
	}
}
