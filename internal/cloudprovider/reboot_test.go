// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

const remediationGroup = "infrastructure.cluster.x-k8s.io"

// remediationObject returns an object of a provider that can restart machines.
func remediationObject(kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(remediationGroup + "/v1")
	o.SetKind(kind)
	o.SetNamespace(fixture.Served.Namespace)
	o.SetName(name)
	return o
}

// remediable are the objects with which the machine of a claim can be restarted: its template, its Machine, and what the
// provider has.
func remediable(change ...func(*v1alpha1.KarpenterMachineTemplate, *clusterv1.Machine)) []client.Object {
	template := &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", Generation: 2}}
	template.Spec.Remediation = &v1alpha1.Remediation{TemplateRef: clusterv1.ContractVersionedObjectReference{APIGroup: remediationGroup, Kind: "TestRemediationTemplate", Name: "reboot"}}
	template.StatusConditions().SetTrue(v1alpha1.ConditionRemediationReady)
	machine := machineOf("m", "claim", hasID("sim://m"), hasNode)
	machine.Spec.ClusterName = fixture.Served.Name
	for _, f := range change {
		f(template, machine)
	}
	objects := []client.Object{template, machine, remediationObject("TestRemediationTemplate", "reboot")}
	for _, plural := range []string{"testremediations", "testremediationtemplates"} {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName(plural + "." + remediationGroup)
		crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1"})
		objects = append(objects, crd)
	}
	return objects
}

// A request is created for a Machine that can be restarted. If the machine can never be restarted, core replaces the Node at
// once, and otherwise it tries again.
func TestReboot(t *testing.T) {
	type template = *v1alpha1.KarpenterMachineTemplate
	type machine = *clusterv1.Machine
	without := func(name string) func([]client.Object) []client.Object {
		return func(objects []client.Object) []client.Object {
			return slices.DeleteFunc(objects, func(o client.Object) bool { return o.GetName() == name })
		}
	}
	for name, tc := range map[string]struct {
		change  func(template, machine)
		objects func([]client.Object) []client.Object
		// want is what the error contains; empty if there is none.
		want string
		// again is whether core tries again after the error.
		again bool
	}{
		"a Machine with a Node": {},
		"no remediation":        {change: func(t template, _ machine) { t.Spec.Remediation = nil }, want: "not implemented"},
		"a template that cannot be used": {change: func(t template, _ machine) {
			t.StatusConditions().SetFalse(v1alpha1.ConditionRemediationReady, "x", "no such kind")
		}, want: "KarpenterMachineTemplate general: no such kind"},
		"a template that was changed":      {change: func(t template, _ machine) { t.Generation++ }, want: "not reconciled yet", again: true},
		"a template without the condition": {change: func(t template, _ machine) { t.Status.Conditions = nil }, want: "not reconciled yet", again: true},
		"no template":                      {objects: without("general"), want: "KarpenterMachineTemplate general does not exist"},
		"no remediation template":          {objects: without("reboot"), want: "TestRemediationTemplate clusters/reboot does not exist"},
		"no Machine":                       {objects: without("m"), want: "no Machine serves NodeClaim claim"},
		"a Machine that leaves":            {change: func(_ template, m machine) { isMarked(m) }, want: "being deleted"},
		"a Machine that is deleted":        {change: func(_ template, m machine) { m.DeletionTimestamp = new(metav1.NewTime(fixture.Noon)) }, want: "being deleted"},
		"a Machine that is paused":         {change: func(_ template, m machine) { m.Annotations[clusterv1.PausedAnnotation] = "" }, want: "paused", again: true},
		"a Machine of another Cluster":     {change: func(_ template, m machine) { m.Spec.ClusterName = "other" }, want: "no Machine serves"},
		"a Machine of another claim":       {change: func(_ template, m machine) { m.Labels[v1alpha1.NodeClaimUIDLabel] = "other" }, want: "no Machine serves"},
		"a second Machine of the claim":    {change: func(_ template, m machine) { m.Spec.ProviderID, m.Status.NodeRef.Name = "sim://other", "other" }, want: "no Machine serves"},
	} {
		t.Run(name, func(t *testing.T) {
			change := func(*v1alpha1.KarpenterMachineTemplate, *clusterv1.Machine) {}
			if tc.change != nil {
				change = tc.change
			}
			objects := remediable(change)
			if tc.objects != nil {
				objects = tc.objects(objects)
			}
			claim := launched("claim", "small")
			claim.Spec.NodeClassRef = nodeClassRef
			claim.Status.ProviderID, claim.Status.NodeName = "sim://m", "n"
			c := indexed(append(objects, claim)...)
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			both := fixture.Cluster{Client: c}
			var events published
			provider := New(&clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, nil, clocktesting.NewFakePassiveClock(fixture.Noon)).WithRecorder(&events)

			err := provider.Reboot(t.Context(), claim, "1")
			terminal := cloudprovider.IsNodeRebootFailedError(err) || cloudprovider.IsNodeRebootNotImplementedError(err)
			if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || terminal == tc.again) {
				t.Errorf("got %v, want %q, again: %t", err, tc.want, tc.again)
			}
			request := remediationObject("TestRemediation", "")
			found := c.Get(t.Context(), types.NamespacedName{Namespace: fixture.Served.Namespace, Name: "m"}, request)
			if (found == nil) != (tc.want == "") || found != nil && !apierrors.IsNotFound(found) {
				t.Errorf("got %v for the request", found)
			}
			if (len(events) > 0) != (tc.want == "") {
				t.Errorf("got events %v", events)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			if _, named := claim.Annotations[v1alpha1.RemediationAnnotation]; named != (tc.want == "") {
				t.Errorf("got annotations %v", claim.Annotations)
			}
		})
	}
}

// A claim of another NodeClass has no remediation.
func TestRebootOfAnotherNodeClass(t *testing.T) {
	both := fixture.Cluster{Client: indexed()}
	claim := launched("claim", "small")
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "example.com", Kind: "Other", Name: "general"}
	err := New(&clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, nil, clocktesting.NewFakePassiveClock(fixture.Noon)).Reboot(t.Context(), claim, "1")
	if !cloudprovider.IsNodeRebootFailedError(err) {
		t.Errorf("got %v", err)
	}
}
