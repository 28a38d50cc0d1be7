// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
)

// What the Catalog keeps for a resourceVersion of a template changes with time, although nothing is written.
func TestOfferingsOpenInTime(t *testing.T) {
	c, _ := newWorld(t, listed(m5large()))
	input := known(template("types"), 1)
	for _, zone := range []string{"a", "b"} {
		until := map[string]time.Duration{"a": time.Minute, "b": 5 * time.Minute}[zone]
		input.Status.UnavailableOfferings = append(input.Status.UnavailableOfferings, v1alpha1.UnavailableOffering{
			InstanceType: "m5.large", Zone: zone, CapacityType: "on-demand", Until: metav1.NewTime(began.Add(until)),
		})
	}
	for _, step := range []struct {
		after time.Duration
		want  []string
	}{
		{0, []string{"a/on-demand", "b/on-demand"}},
		{time.Minute - time.Second, []string{"a/on-demand", "b/on-demand"}},
		{time.Minute, []string{"b/on-demand"}},
		{5*time.Minute - time.Second, []string{"b/on-demand"}},
		{5 * time.Minute, nil},
		{30 * time.Second, []string{"a/on-demand", "b/on-demand"}}, // the clock was set back
	} {
		if diff := cmp.Diff(step.want, closed(t, c, input, began.Add(step.after))); diff != "" {
			t.Errorf("closed after %s (-want +got):\n%s", step.after, diff)
		}
	}
}

// Each new state of the status takes effect, with the instance types of NodePools that set labels of others, too.
func TestStatusTakesEffect(t *testing.T) {
	labelled := listed(m5large())
	labelled.Name, labelled.Spec.InstanceTypes[0].Labels = "labelled", map[string]v1alpha1.LabelValue{"example.com/cached": "yes"}
	c, _ := newWorld(t, listed(m5large()), labelled)
	other := known(template("labelled"), 1)
	other.Name, other.UID = "other", "2"
	if _, err := c.InstanceTypes(t.Context(), other, began); err != nil {
		t.Fatal(err)
	}
	input := known(template("types"), 1)
	available := func() (plain, variant int) {
		t.Helper()
		for at, labels := range [][]string{nil, {"example.com/cached"}} {
			instanceTypes, err := c.InstanceTypesFor(t.Context(), input, Demand{Labels: labels}, began)
			if err != nil {
				t.Fatal(err)
			}
			if has := instanceTypes[0].Requirements.Has("example.com/cached"); has != (at == 0) {
				t.Errorf("with labels %v: there is a requirement for it: %t", labels, has)
			}
			*[]*int{&plain, &variant}[at] = len(instanceTypes[0].Offerings.Available())
		}
		return plain, variant
	}
	input.Spec.MaxMachines = new(int32(5))
	pause := []v1alpha1.ScalableResourceStatus{{InstanceType: "m5.large", Zone: "a", CapacityType: "spot", Paused: true}}
	for version, step := range []struct {
		name   string
		status v1alpha1.KarpenterMachineTemplateStatus
		want   int
	}{
		{"nothing", v1alpha1.KarpenterMachineTemplateStatus{}, 3},
		{"one is paused", v1alpha1.KarpenterMachineTemplateStatus{ScalableResources: pause}, 2},
		{"none is paused", v1alpha1.KarpenterMachineTemplateStatus{}, 3},
		{"the template is full", v1alpha1.KarpenterMachineTemplateStatus{NodeClaims: 5}, 0},
		{"it has room", v1alpha1.KarpenterMachineTemplateStatus{NodeClaims: 4}, 3},
	} {
		input.ResourceVersion, input.Status = fmt.Sprint(version), step.status
		if plain, variant := available(); plain != step.want || variant != step.want {
			t.Errorf("%s: got %d and %d available offerings, want %d", step.name, plain, variant, step.want)
		}
	}
}

// A label that another template gives to Nodes later does not exist on the Nodes of this one.
func TestLabelsTakeEffect(t *testing.T) {
	labelled := listed(m5large())
	labelled.Name, labelled.Spec.InstanceTypes[0].Labels = "labelled", map[string]v1alpha1.LabelValue{"example.com/later": "yes"}
	c, _ := newWorld(t, listed(m5large()), labelled)
	input := known(template("types"), 1)
	if _, err := c.InstanceTypes(t.Context(), input, began); err != nil {
		t.Fatal(err)
	}
	other := known(template("labelled"), 1)
	other.Name, other.UID = "other", "2"
	if _, err := c.InstanceTypes(t.Context(), other, began); err != nil {
		t.Fatal(err)
	}
	instanceTypes, err := c.InstanceTypes(t.Context(), input, began)
	if err != nil {
		t.Fatal(err)
	}
	if got := instanceTypes[0].Requirements["example.com/later"]; got == nil || got.Operator() != corev1.NodeSelectorOpDoesNotExist {
		t.Errorf("got %v, want that the label does not exist", got)
	}
}

// A Refresh that has read an older generation does not replace what is known of a newer one.
func TestRefreshOfAnOlderGeneration(t *testing.T) {
	c, _ := newWorld(t, listed(m5large()))
	older, newer := known(template("types"), 1), known(template(), 2)
	find := func(template *v1alpha1.KarpenterMachineTemplate, want int) {
		t.Helper()
		types, _, err := c.Types(t.Context(), template)
		if err != nil || len(types) != want {
			t.Errorf("got %d types and %v, want %d", len(types), err, want)
		}
	}
	find(newer, 0)
	if _, err := c.Refresh(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	if got := c.entries["general"].generation; got != 2 {
		t.Errorf("the entry is of generation %d, want 2", got)
	}
	recreated := known(template("types"), 1)
	recreated.UID = "2"
	if _, err := c.Refresh(t.Context(), recreated); err != nil {
		t.Fatal(err)
	}
	if got := c.entries["general"]; got.generation != 1 || got.uid != "2" || len(got.types) != 1 {
		t.Errorf("the entry is of generation %d of template %s, want that of the template that exists now", got.generation, got.uid)
	}
}

// These labels are set by others, so an instance type does not give them to its Nodes.
func TestLabelsOfNodes(t *testing.T) {
	got := nodeLabels(map[string]string{
		"team": "a", "node.cluster.x-k8s.io/disk": "ssd", corev1.LabelTopologyRegion: "r", corev1.LabelArchStable: "arm64", "my-karpenter.sh/x": "1", "karpenter.sh": "1",
		v1alpha1.InstanceFamilyLabel: "m7", v1alpha1.InstanceGPUNameLabel: "t4",

		corev1.LabelHostname: "h", corev1.LabelInstanceTypeStable: "m5", corev1.LabelTopologyZone: "a", "karpenter.sh/capacity-type": "spot", "compatibility.karpenter.sh/x": "1",
		v1alpha1.InstanceCPULabel: "2", v1alpha1.InstanceGPUCountLabel: "1", v1alpha1.ReservationIDLabel: "cr-1", v1alpha1.TemplateLabel: "general",
	})
	want := map[string]string{
		"team": "a", "node.cluster.x-k8s.io/disk": "ssd", corev1.LabelTopologyRegion: "r", corev1.LabelArchStable: "arm64", "my-karpenter.sh/x": "1", "karpenter.sh": "1",
		v1alpha1.InstanceFamilyLabel: "m7", v1alpha1.InstanceGPUNameLabel: "t4",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The revision changes exactly with what shapes Machines of any instance type.
func TestRevisionIsExact(t *testing.T) {
	before := template("types")
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KarpenterMachineTemplateSpec)
		same   bool
	}{
		"a label of Machines": {func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.Template.Metadata.Labels = map[string]v1alpha1.LabelValue{"a": "b"}
		}, true},
		"a time until ready": {func(s *v1alpha1.KarpenterMachineTemplateSpec) { s.Template.Spec.MinReadySeconds = new(int32(9)) }, true},
		"a readiness gate": {func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.Template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "x"}}
		}, true},
		"a deletion timeout": {func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.Template.Spec.Deletion = &clusterv1.MachineDeletionSpec{NodeDeletionTimeoutSeconds: new(int32(9))}
		}, true},
		"the way of following": {func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.Template.From = &v1alpha1.MachineTemplateSource{MachineDeployment: "a"}
		}, true},
		"the bootstrap":      {func(s *v1alpha1.KarpenterMachineTemplateSpec) { s.Template.Spec.Bootstrap.ConfigRef.Name = "x" }, false},
		"a Secret":           {func(s *v1alpha1.KarpenterMachineTemplateSpec) { s.Template.Spec.Bootstrap.DataSecretName = new("x") }, false},
		"the infrastructure": {func(s *v1alpha1.KarpenterMachineTemplateSpec) { s.Template.Spec.InfrastructureRef.Name = "x" }, false},
		"the kind of resources": {func(s *v1alpha1.KarpenterMachineTemplateSpec) {
			s.ScalableResource.Kind = v1alpha1.ScalableResourceKindMachinePool
		}, false},
	} {
		after := before.DeepCopy()
		tc.change(&after.Spec)
		if same := RevisionOf(before) == RevisionOf(after); same != tc.same {
			t.Errorf("%s: same revision: %t, want %t", name, same, tc.same)
		}
	}
}
