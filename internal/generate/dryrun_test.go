// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// asking is a template with an offering in each of three zones, each with a template
// of its own, and an API server that answers as the test wants.
type asking struct {
	*Examiner
	clock    *clocktesting.FakeClock
	template *v1alpha1.KarpenterMachineTemplate
	bases    Bases
	asked    []string
	last     string // name of the object that was asked about last
	answer   func(zone string) error
	// resources are the scalable resources that were asked about, which validate validates.
	resources []client.Object
	validate  func(client.Object) error
}

func newAsking() *asking {
	a := &asking{clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), answer: func(string) error { return nil }, validate: func(client.Object) error { return nil }}
	a.template = &v1alpha1.KarpenterMachineTemplate{}
	a.template.Name = "general"
	a.template.Spec.Template.Spec.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestMachineTemplate", Name: "workers"}
	a.template.Spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTargetInfrastructure, JSONPatches: []v1alpha1.JSONPatch{
		{Op: "add", Path: "/spec/zone", ValueFrom: &v1alpha1.JSONPatchValue{Template: "{{ .zone }}"}},
	}}}
	a.bases.Infrastructure = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "TestMachineTemplate",
		"metadata": map[string]any{"name": "workers"}, "spec": map[string]any{},
	}}
	one := make(chan struct{}, 1) // the answers come from several goroutines
	management := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
			one <- struct{}{}
			defer func() { <-one }()
			given := (&client.CreateOptions{}).ApplyOptions(options)
			copied, is := object.(*unstructured.Unstructured)
			if !is {
				a.resources = append(a.resources, object)
				return a.validate(object)
			}
			zone, _, _ := unstructured.NestedString(copied.Object, "spec", "zone")
			if len(given.DryRun) == 0 || given.FieldValidation != "Strict" {
				return errors.New("this is no strict dry run")
			}
			a.asked, a.last = append(a.asked, zone), object.GetName()
			return a.answer(zone)
		},
	})
	clusters := &clients.Clusters{Cluster: types.NamespacedName{Namespace: "fleet", Name: "served"}, Management: fixture.Cluster{Client: management}}
	a.Examiner = NewExaminer(clusters, nil, a.clock)
	return a
}

func (a *asking) examine(t *testing.T, before map[string]answer) (Result, map[string]answer, error) {
	t.Helper()
	a.asked, a.resources = nil, nil
	offered := []catalog.Type{{Name: "m5"}}
	for _, zone := range []string{"a", "b", "c"} {
		offered[0].Offerings = append(offered[0].Offerings, catalog.Offering{Zone: zone, CapacityType: "on-demand"})
	}
	known := &examined{types: offered, answers: before}
	result, err := a.Examiner.examine(t.Context(), a.template, a.bases, known)
	return result, known.answers, err
}

func key(zone string) catalog.Key {
	return catalog.Key{InstanceType: "m5", Zone: zone, CapacityType: "on-demand"}
}

func TestExamine(t *testing.T) {
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "TestMachineTemplate"}, "x", nil)
	in := func(bad string, err error) func(string) error {
		return func(zone string) error {
			if strings.Contains(bad, zone) {
				return err
			}
			return nil
		}
	}
	a := newAsking()

	a.answer = in("b", apierrors.NewInternalError(errors.New("the webhook is not there")))
	_, answers, err := a.examine(t, nil)
	if err == nil || !strings.Contains(err.Error(), "did not answer dry runs of 1 of 4 generated objects") || !strings.Contains(err.Error(), "the webhook is not there") || ReasonOf(err) != v1alpha1.ReasonTemplatesRejected {
		t.Fatalf("got %v", err)
	}

	a.answer = in("b", refused)
	got, answers, err := a.examine(t, answers)
	if err != nil || len(a.asked) != 1 || a.asked[0] != "b" {
		t.Fatalf("got %v, asked about %v, want zone b only: the others have answers", err, a.asked)
	}
	if len(got.Invalid) != 1 || got.Invalid[0].Count != 1 || got.Invalid[0].Examples[0] != "m5/b/on-demand" || got.Invalid[0].Reason != v1alpha1.ReasonTemplatesRejected || got.Hash != "" || got.All != nil {
		t.Fatalf("got %+v", got)
	}
	if diff := cmp.Diff(sets.New(key("a"), key("c")), got.accepted); diff != "" {
		t.Fatalf("accepted (-want +got):\n%s", diff)
	}

	if _, _, err = a.examine(t, answers); err != nil || len(a.asked) != 0 {
		t.Fatalf("got %v, asked about %v, want nothing: a rejection is not tried again for 5 minutes", err, a.asked)
	}

	a.clock.Step(askAgainAfter)
	a.answer = in("", nil)
	got, _, err = a.examine(t, answers)
	if err != nil || len(a.asked) != 1 || len(got.Invalid) != 0 || got.Hash == "" || got.accepted.Len() != 3 {
		t.Fatalf("got %+v, %v, asked about %v", got, err, a.asked)
	}

	a.template.Status.AcceptedHash = got.Hash
	if _, _, err = a.examine(t, nil); err != nil || len(a.asked) != 0 {
		t.Fatalf("got %v, asked about %v, want nothing: the status has the hash of what was accepted", err, a.asked)
	}

	a.template.Status.AcceptedHash = ""
	a.answer = in("abc", refused)
	if got, _, err = a.examine(t, nil); err != nil || got.All == nil || len(got.Invalid) != 0 || !strings.Contains(got.All.Error(), "3 of 3 generated offerings are invalid; m5/a/on-demand") {
		t.Fatalf("got %+v, %v", got, err)
	}
}

// What was not asked about before the time was over is not accepted.
func TestUnaskedObjectsAreNotAccepted(t *testing.T) {
	a := newAsking()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.Examiner.examine(ctx, a.template, a.bases, &examined{types: offered("a", "b")})
	if err == nil || !strings.Contains(err.Error(), "did not answer dry runs of 3 of 3 generated objects") {
		t.Errorf("got %v, asked about %v", err, a.asked)
	}
}
