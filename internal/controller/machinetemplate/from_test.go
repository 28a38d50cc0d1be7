// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/budget"
	"github.com/karpenter-capi/karpenter-capi/internal/pattern"
)

// newPattern returns a MachineDeployment that the template of newFollower names.
func newPattern() *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "pattern"}}
	machine := &deployment.Spec.Template
	machine.Labels = map[string]string{"team": "platform"}
	machine.Spec.Version, machine.Spec.Bootstrap.DataSecretName = "v1.36.2", new("bootstrap")
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrastructureKind.Group, Kind: infrastructureKind.Kind, Name: "workers"}
	return deployment
}

func newFollower() *v1alpha1.KarpenterMachineTemplate {
	template := newTemplate()
	template.Spec.Template = v1alpha1.MachineTemplate{From: &v1alpha1.MachineTemplateSource{MachineDeployment: "pattern"}}
	return template
}

// A template takes what its MachineDeployment has, and only its status is written.
func TestFrom(t *testing.T) {
	c := newCell(newFollower(), newPattern())
	for _, version := range []string{"v1.36.2", "v1.36.3"} {
		deployment := newPattern()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
			t.Fatal(err)
		}
		deployment.Spec.Template.Spec.Version = version
		if err := c.Update(t.Context(), deployment); err != nil {
			t.Fatal(err)
		}
		template, err := c.reconcile(t, "general")
		if err != nil {
			t.Fatal(err)
		}
		conditions := template.StatusConditions()
		if !conditions.Root().IsTrue() || !conditions.IsTrue(v1alpha1.ConditionFromReady) {
			t.Errorf("the template is not Ready: %s", conditions.Root().Message)
		}
		if message := conditions.Get(v1alpha1.ConditionVersionReady).Message; template.Status.Version != version || !strings.Contains(message, "MachineDeployment pattern") {
			t.Errorf("got version %s: %s", template.Status.Version, message)
		}
		if diff := cmp.Diff(&pattern.Observe(deployment).ObservedMachineTemplate, template.Status.From); diff != "" {
			t.Errorf("status.from (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(newFollower().Spec, template.Spec); diff != "" {
			t.Errorf("the stored spec (-want +got):\n%s", diff)
		}
		after, err := c.reconcile(t, "general")
		if err != nil || after.ResourceVersion != template.ResourceVersion {
			t.Errorf("the second reconcile has written the template: %v", err)
		}
	}
}

// A MachineDeployment that cannot be used is named with what to do. Conditions that depend on it are Unknown, and what
// was learned from Nodes stays.
func TestFromCannotBeUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		from   v1alpha1.MachineTemplateSource
		change func(*clusterv1.MachineDeployment)
		reason string
		words  []string
	}{
		"it does not exist": {from: v1alpha1.MachineTemplateSource{MachineDeployment: "other"},
			reason: v1alpha1.ReasonReferenceNotFound, words: []string{"Cluster fleet/served has no MachineDeployment fleet/other", "name one of this Cluster"}},
		"the topology has no such entry": {from: v1alpha1.MachineTemplateSource{MachineDeploymentTopology: "md-0"},
			reason: v1alpha1.ReasonReferenceNotFound, words: []string{"has no MachineDeployment md-0", "spec.topology.workers.machineDeployments"}},
		"it was generated": {from: v1alpha1.MachineTemplateSource{MachineDeployment: "pattern"},
			change: func(d *clusterv1.MachineDeployment) { d.Labels = map[string]string{v1alpha1.TemplateLabel: "other"} },
			reason: v1alpha1.ReasonReferenceUnusable, words: []string{"MachineDeployment fleet/pattern was generated from KarpenterMachineTemplate other", "name one that"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []*v1alpha1.ObservedMachineTemplate{nil, &pattern.Observe(newPattern()).ObservedMachineTemplate} {
				template, deployment := newFollower(), newPattern()
				learned := []v1alpha1.ObservedCapacity{{InstanceType: "m5", Revision: "of the pattern", Nodes: 2}}
				template.Status.ObservedCapacity, template.Status.Version, template.Status.AcceptedHash = learned, "v1.36.2", "accepted"
				template.Spec.Template.From, template.Status.From = &tc.from, before
				if tc.change != nil {
					tc.change(deployment)
				}
				got, err := newCell(template, deployment).reconcile(t, "general")
				if err != nil {
					t.Fatal(err)
				}
				condition := got.StatusConditions().Get(v1alpha1.ConditionFromReady)
				if !condition.IsFalse() || condition.Reason != tc.reason {
					t.Errorf("got %s for reason %s, want False for %s", condition.Status, condition.Reason, tc.reason)
				}
				for _, word := range tc.words {
					if !strings.Contains(condition.Message, word) {
						t.Errorf("got %q, want it to contain %q", condition.Message, word)
					}
				}
				// Nothing else hides it in the message that users read first.
				if ready := got.StatusConditions().Get(status.ConditionReady); !ready.IsFalse() || ready.Message != condition.Message {
					t.Errorf("Ready is %s: %s", ready.Status, ready.Message)
				}
				for _, dependent := range []string{v1alpha1.ConditionInfrastructureReady, v1alpha1.ConditionBootstrapReady, v1alpha1.ConditionVersionReady} {
					if c := got.StatusConditions().Get(dependent); !c.IsUnknown() || c.Message != waitsForFrom {
						t.Errorf("%s is %s: %s", dependent, c.Status, c.Message)
					}
				}
				if got.Status.From != nil || got.Status.Version != "" {
					t.Errorf("got %+v and version %q, want none", got.Status.From, got.Status.Version)
				}
				if diff := cmp.Diff(learned, got.Status.ObservedCapacity); diff != "" || got.Status.AcceptedHash != "accepted" {
					t.Errorf("got %s accepted, and what was learned (-want +got):\n%s", got.Status.AcceptedHash, diff)
				}
				if got.Status.InstanceTypes != 1 {
					t.Errorf("got %d instance types, want that the template keeps its own", got.Status.InstanceTypes)
				}
			}
		})
	}
}

// What a template takes takes effect when it is examined, together with the result.
func TestFromIsWrittenWithItsExamination(t *testing.T) {
	c := newCell(newFollower(), newPattern())
	broken := errors.New("etcdserver: leader changed")
	c.fails = func(verb string, object any, _ string) error {
		if _, is := object.(*karpv1.NodeClaimList); is && verb == "list" {
			return broken
		}
		return nil
	}
	template, err := c.reconcile(t, "general")
	if !errors.Is(err, broken) {
		t.Fatalf("got %v, want that the NodeClaims cannot be listed", err)
	}
	if template.Status.From != nil || template.StatusConditions().Root().IsTrue() {
		t.Errorf("got %+v, and Ready is %s", template.Status.From, template.StatusConditions().Root().Status)
	}
	if template, err = c.reconcile(t, "general"); err != nil || template.Status.From == nil || !template.StatusConditions().Root().IsTrue() {
		t.Errorf("after that got %v, %+v and %s", err, template.Status.From, template.StatusConditions().Root().Message)
	}
	examined := template.Status
	deployment := newPattern()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
		t.Fatal(err)
	}
	deployment.Spec.Template.Spec.Version = "v1.36.3"
	if err := c.Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	for kind, list := range map[string]client.ObjectList{"NodeClaims": &karpv1.NodeClaimList{}, "MachineDeployments": &clusterv1.MachineDeploymentList{}} {
		c.fails = func(verb string, object any, _ string) error {
			if _, is := object.(*clusterv1.MachineDeployment); reflect.TypeOf(object) == reflect.TypeOf(list) || is && kind == "MachineDeployments" {
				return broken
			}
			return nil
		}
		template, err := c.reconcile(t, "general")
		if !errors.Is(err, broken) {
			t.Fatalf("got %v, want that the %s cannot be read", err, kind)
		}
		if diff := cmp.Diff(examined.From, template.Status.From); diff != "" {
			t.Errorf("what was examined, while the %s cannot be read (-want +got):\n%s", kind, diff)
		}
	}
}

// However much the MachineDeployment has, the status has no more than its name and a hash.
func TestFromIsBounded(t *testing.T) {
	deployment := newPattern()
	deployment.Spec.Template.Annotations = map[string]string{"large": strings.Repeat("x", 256<<10)}
	template, err := newCell(newFollower(), deployment).reconcile(t, "general")
	if err != nil || template.Status.From == nil {
		t.Fatalf("got %v and %+v", err, template.Status)
	}
	if size := budget.Size(template.Status.From); size > 100 {
		t.Errorf("status.from has %d bytes", size)
	}
	if !regexp.MustCompile("^v[0-9]+-[0-9a-f]{32}$").MatchString(template.Status.From.Hash) {
		t.Errorf("got hash %q, want a version and 32 hexadecimal digits", template.Status.From.Hash)
	}
}

// A template that no longer follows a MachineDeployment loses what it has taken.
func TestFromEnds(t *testing.T) {
	c := newCell(newFollower(), newPattern())
	template, err := c.reconcile(t, "general")
	if err != nil {
		t.Fatal(err)
	}
	template.Spec.Template = newTemplate().Spec.Template
	if err := c.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	template, err = c.reconcile(t, "general")
	if err != nil || template.Status.From != nil || template.StatusConditions().Get(v1alpha1.ConditionFromReady) != nil {
		t.Errorf("got %v, %+v", err, template.Status)
	}
	if !template.StatusConditions().Root().IsTrue() {
		t.Errorf("the template is not Ready: %s", template.StatusConditions().Root().Message)
	}
}
