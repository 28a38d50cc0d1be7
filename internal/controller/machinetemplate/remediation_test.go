// SPDX-License-Identifier: Apache-2.0

package machinetemplate

import (
	"context"
	"strings"
	"testing"

	"github.com/samber/lo"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

var remediationKind = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "TestRemediationTemplate"}

// definitionOf returns the CustomResourceDefinition of a kind of the provider.
func definitionOf(plural string) *unstructured.Unstructured {
	crd := named(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, plural+"."+remediationKind.Group)
	crd.SetNamespace("")
	crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"})
	return crd
}

// The condition reports why machines cannot be restarted, and the template can launch machines nevertheless.
func TestRemediationReady(t *testing.T) {
	template, requests := definitionOf("testremediationtemplates"), definitionOf("testremediations")
	for name, tc := range map[string]struct {
		none     bool // whether the template has no remediation
		objects  []client.Object
		denied   []string // verbs
		unlisted bool
		rules    tenancy.Rules // of --allowed-base-templates
		reason   string        // of the condition; empty if it is True
		message  string
		again    bool // whether a right can be added without an event
	}{
		"no remediation":                 {none: true},
		"all of it exists":               {objects: []client.Object{template, requests, named(remediationKind, "reboot")}},
		"no kind of templates":           {reason: v1alpha1.ReasonReferenceKindUnusable, message: "no kind TestRemediationTemplate."},
		"no template":                    {objects: []client.Object{template, requests}, reason: v1alpha1.ReasonReferenceNotFound, message: "TestRemediationTemplate fleet/reboot does not exist"},
		"no kind of requests":            {objects: []client.Object{template, named(remediationKind, "reboot")}, reason: v1alpha1.ReasonReferenceKindUnusable, message: "no kind TestRemediation."},
		"no right to the requests":       {objects: []client.Object{template, requests, named(remediationKind, "reboot")}, denied: []string{"create", "delete"}, reason: v1alpha1.ReasonRequestsNotAllowed, message: "no right to create, delete TestRemediation.", again: true},
		"a template that is not allowed": {objects: []client.Object{template, requests, named(remediationKind, "reboot")}, rules: lo.Must(tenancy.Parse("bootstrap", "TestMachineTemplate/*", "")), reason: v1alpha1.ReasonBaseTemplateNotAllowed, message: "TestRemediationTemplate"},
		"no right to the templates":      {objects: []client.Object{template, requests, named(remediationKind, "reboot")}, unlisted: true, reason: v1alpha1.ReasonObjectsNotReadable, message: "cannot be listed", again: true},
	} {
		t.Run(name, func(t *testing.T) {
			edited := newTemplate()
			if !tc.none {
				edited.Spec.Remediation = &v1alpha1.Remediation{TemplateRef: clusterv1.ContractVersionedObjectReference{APIGroup: remediationKind.Group, Kind: remediationKind.Kind, Name: "reboot"}}
			}
			objects := []client.Object{edited}
			for _, object := range tc.objects {
				objects = append(objects, object.DeepCopyObject().(client.Object))
			}
			c := newCell(objects...)
			asked := 0
			reviewing := interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
				Create: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.CreateOption) error {
					review, is := object.(*authorizationv1.SelfSubjectAccessReview)
					if !is {
						return w.Create(ctx, object, options...)
					}
					asked++
					of := review.Spec.ResourceAttributes
					review.Status.Allowed = of.Resource == "testremediations" && of.Group == remediationKind.Group && of.Namespace == "fleet" && !strings.Contains(strings.Join(tc.denied, ","), of.Verb)
					return nil
				},
			})
			both := fixture.Cluster{Client: reviewing}
			allowed := fixture.Allowed
			if len(tc.rules.BaseTemplates) > 0 {
				allowed = tc.rules
			}
			c.start(&clients.Clusters{Cluster: c.clusters.Cluster, Workload: both, Management: both, Allowed: allowed})
			var result reconcile.Result
			for range 2 {
				c.fails = func(_ string, object any, name string) error {
					if _, is := object.(*unstructured.Unstructured); is && tc.unlisted && name == "reboot" {
						return reference.Unlisted{Kind: remediationKind.GroupKind()}
					}
					return nil
				}
				var err error
				if result, err = c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(edited)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(edited), edited); err != nil {
				t.Fatal(err)
			}
			conditions := edited.StatusConditions()
			got := conditions.Get(v1alpha1.ConditionRemediationReady)
			switch {
			case tc.none:
				if got != nil || asked > 0 {
					t.Errorf("got %+v, and %d reviews", got, asked)
				}
			case tc.reason == "":
				if !got.IsTrue() || asked != len(requestVerbs) {
					t.Errorf("got %+v, and %d reviews", got, asked)
				}
			default:
				if !got.IsFalse() || got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) || !strings.Contains(got.Message, "Unhealthy Nodes are replaced") {
					t.Errorf("got %+v, want reason %s and message %q", got, tc.reason, tc.message)
				}
			}
			if !conditions.Root().IsTrue() {
				t.Errorf("got Ready %+v", conditions.Root())
			}
			if (result.RequeueAfter > 0 && result.RequeueAfter <= readAgain) != tc.again {
				t.Errorf("it is reconciled again after %s", result.RequeueAfter)
			}
		})
	}
}

// A template whose remediation is removed does not have the condition any more.
func TestRemediationIsRemoved(t *testing.T) {
	edited := newTemplate()
	edited.StatusConditions().SetTrue(v1alpha1.ConditionRemediationReady)
	got, err := newCell(edited).reconcile(t, edited.Name)
	if err != nil || got.StatusConditions().Get(v1alpha1.ConditionRemediationReady) != nil {
		t.Errorf("got %+v and %v", got.Status.Conditions, err)
	}
}
