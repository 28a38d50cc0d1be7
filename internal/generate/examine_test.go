// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/catalog"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// examining is an Examiner of a template whose copies have their zone and the Kubernetes version.
type examining struct {
	*Examiner
	clusters *clients.Clusters
	clock    *clocktesting.FakeClock
	template *v1alpha1.KarpenterMachineTemplate
	types    []catalog.Type
	asked    []string // zones and versions
	answer   func(zone string) error
}

func object(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func newExamining(t *testing.T) *examining {
	t.Helper()
	crd := func(plural string) client.Object {
		o := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural, nil)
		o.SetLabels(map[string]string{clusterv1.GroupVersion.String(): "v1beta2"})
		return o
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: fixture.Served.Name}}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "TestControlPlane", Name: "cp"}
	e := &examining{clock: clocktesting.NewFakeClock(fixture.Noon), answer: func(string) error { return nil }}
	// It has a name that the template does not generate.
	other := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Served.Namespace, Name: "other"}}
	other.Spec.Template.Spec.ClusterName = fixture.Served.Name
	e.clusters = fixture.Clusters(cluster, other, crd("testmachinetemplates.infrastructure.cluster.x-k8s.io"), crd("testcontrolplanes.controlplane.cluster.x-k8s.io"),
		object("infrastructure.cluster.x-k8s.io/v1beta2", "TestMachineTemplate", fixture.Served.Namespace, "workers", map[string]any{"ami": "1", "template": map[string]any{}}),
		object("controlplane.cluster.x-k8s.io/v1beta2", "TestControlPlane", fixture.Served.Namespace, "cp", map[string]any{"version": "v1.36.3"}))
	one := make(chan struct{}, 1) // dry runs come from several goroutines
	e.clusters.Management = fixture.Cluster{Client: interceptor.NewClient(e.clusters.Management.GetClient().(client.WithWatch), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			generated, isCopy := o.(*unstructured.Unstructured)
			if !isCopy || generated.GetKind() != "TestMachineTemplate" {
				return nil
			}
			one <- struct{}{}
			defer func() { <-one }()
			zone, _, _ := unstructured.NestedString(generated.Object, "spec", "zone")
			e.asked = append(e.asked, zone)
			name, _, _ := strings.Cut(zone, " ")
			return e.answer(name)
		},
	})}
	e.template = &v1alpha1.KarpenterMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "general", UID: "1", Generation: 1}}
	e.template.Spec.Template.Spec.InfrastructureRef = &clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestMachineTemplate", Name: "workers"}
	e.template.Spec.Patches = []v1alpha1.Patch{fixture.Patch("/spec/zone", "x")}
	e.template.Spec.Patches[0].JSONPatches[0].Value = nil
	e.template.Spec.Patches[0].JSONPatches[0].ValueFrom = &v1alpha1.JSONPatchValue{Template: "{{ .zone }} {{ .kubernetesVersion }}"}
	e.types = offered("a", "b")
	e.Examiner = NewExaminer(e.clusters, catalog.New(e.clusters), e.clock)
	return e
}

func offered(zones ...string) []catalog.Type {
	types := []catalog.Type{{Name: "m5"}}
	for _, zone := range zones {
		types[0].Offerings = append(types[0].Offerings, catalog.Offering{Zone: zone, CapacityType: "on-demand", FailureDomain: zone})
	}
	return types
}

// examine examines the template. It checks what dry runs were sent, and after what time to examine again.
func (e *examining) examine(t *testing.T, what string, wantAsked []string, wantAgain time.Duration) Result {
	t.Helper()
	e.asked = nil
	result, again, err := e.Examine(t.Context(), e.template, e.types)
	if err != nil {
		t.Fatalf("%s: %s", what, err)
	}
	slices.Sort(e.asked)
	if diff := cmp.Diff(wantAsked, e.asked); diff != "" {
		t.Errorf("%s: dry runs (-want +got):\n%s", what, diff)
	}
	if again != wantAgain {
		t.Errorf("%s: examined again after %s, want %s", what, again, wantAgain)
	}
	return result
}

func (e *examining) edit(t *testing.T, kind, group, name string, change func(spec map[string]any)) {
	t.Helper()
	o := object(group+"/v1beta2", kind, fixture.Served.Namespace, name, nil)
	management := e.clusters.Management.GetClient()
	if err := management.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	change(o.Object["spec"].(map[string]any))
	if err := management.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// The API server is asked once about each generated object, as long as it accepts them. Whatever changes the objects is
// asked about.
func TestExaminedOnce(t *testing.T) {
	e := newExamining(t)
	e.types = nil
	e.examine(t, "without instance types", nil, 0)
	e.types = offered("a", "b")
	first := e.examine(t, "at first", []string{"a v1.36.3", "b v1.36.3"}, 0)
	if first.Hash == "" || len(first.Invalid) > 0 || first.All != nil {
		t.Fatalf("got %+v", first)
	}
	e.clock.Step(24 * time.Hour)
	e.examine(t, "after a day", nil, 0)
	e.types = offered("a", "b", "c")
	e.examine(t, "with another zone", []string{"c v1.36.3"}, 0)
	e.edit(t, "TestControlPlane", "controlplane.cluster.x-k8s.io", "cp", func(spec map[string]any) { spec["version"] = "v1.36.4" })
	e.examine(t, "after an upgrade", []string{"a v1.36.4", "b v1.36.4", "c v1.36.4"}, 0)
	e.edit(t, "TestMachineTemplate", "infrastructure.cluster.x-k8s.io", "workers", func(spec map[string]any) { spec["ami"] = "2" })
	edited := e.examine(t, "after an edit of the base", []string{"a v1.36.4", "b v1.36.4", "c v1.36.4"}, 0)
	e.template.Generation = 2
	e.template.Spec.Patches = append(e.template.Spec.Patches, fixture.Patch("/spec/disk", "large"))
	e.examine(t, "after an edit of the template", []string{"a v1.36.4", "b v1.36.4", "c v1.36.4"}, 0)
	e.template.UID, e.template.Generation, e.template.Spec.Patches = "2", 2, e.template.Spec.Patches[:1]
	if recreated := e.examine(t, "of another template of its name", []string{"a v1.36.4", "b v1.36.4", "c v1.36.4"}, 0); recreated.Hash != edited.Hash {
		t.Errorf("the same objects have hash %s, and then %s", edited.Hash, recreated.Hash)
	}
	e.Forget("general")
	e.examine(t, "of a deleted template", []string{"a v1.36.4", "b v1.36.4", "c v1.36.4"}, 0)
	e.Forget("general")
	e.template.Status.AcceptedHash = edited.Hash
	e.examine(t, "after a restart, with what the status says", nil, 0)
}

// A rejection holds for five minutes, and a missing answer for ten seconds.
func TestExaminedAgain(t *testing.T) {
	e := newExamining(t)
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "TestMachineTemplate"}, "x", nil)
	e.answer = func(zone string) error { return map[string]error{"b": errors.New("the webhook is not there")}[zone] }
	if got := e.examine(t, "without an answer", []string{"a v1.36.3", "b v1.36.3"}, 10*time.Second); got.All == nil || ReasonOf(got.All) != v1alpha1.ReasonTemplatesRejected {
		t.Errorf("got %+v", got)
	}
	e.clock.Step(9 * time.Second)
	e.examine(t, "soon", nil, time.Second)
	e.clock.Step(time.Second)
	e.answer = func(zone string) error { return map[string]error{"b": refused}[zone] }
	got := e.examine(t, "after ten seconds", []string{"b v1.36.3"}, 5*time.Minute)
	if len(got.Invalid) != 1 || got.Invalid[0].Count != 1 || e.catalog.Accepted(e.template, key("b")) || !e.catalog.Accepted(e.template, key("a")) {
		t.Errorf("got %+v, want that only b is rejected", got)
	}
	e.clock.Step(5*time.Minute - time.Second)
	e.examine(t, "within five minutes", nil, time.Second)
	e.clock.Step(time.Second)
	e.answer = func(string) error { return nil }
	if got := e.examine(t, "after five minutes", []string{"b v1.36.3"}, 0); len(got.Invalid) > 0 || got.Hash == "" || !e.catalog.Accepted(e.template, key("b")) {
		t.Errorf("got %+v, want that all are accepted", got)
	}
	e.edit(t, "TestControlPlane", "controlplane.cluster.x-k8s.io", "cp", func(spec map[string]any) { spec["version"] = "v1.36.4" })
	e.answer = func(string) error { return errors.New("the webhook is not there") }
	if got := e.examine(t, "without an answer after an upgrade", []string{"a v1.36.4", "b v1.36.4"}, 10*time.Second); got.All == nil || !e.catalog.Examined(e.template) {
		t.Errorf("got %+v, want that what was accepted before can be launched", got)
	}
}

// An adopted MachineDeployment exists, so its offering is accepted without a dry run.
func TestAdoptedOfferingsAreNotAskedAbout(t *testing.T) {
	e := newExamining(t)
	e.types[0].Offerings[1].MachineDeployment = "existing"
	if got := e.examine(t, "with an adopted offering", []string{"a v1.36.3"}, 0); got.Hash == "" || !e.catalog.Accepted(e.template, key("b")) {
		t.Errorf("got %+v, want that both are accepted", got)
	}
}

// Without a base template, what was found before stays, as long as a condition shows the reason.
func TestExaminedWithoutABase(t *testing.T) {
	for name, tc := range map[string]struct {
		ready []string
		fails bool
	}{
		"a condition shows it":      {ready: []string{v1alpha1.ConditionBootstrapReady}},
		"no condition shows it yet": {ready: []string{v1alpha1.ConditionBootstrapReady, v1alpha1.ConditionInfrastructureReady}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExamining(t)
			for _, condition := range tc.ready {
				e.template.StatusConditions().SetTrue(condition)
			}
			e.template.Spec.Template.Spec.InfrastructureRef.Name = "missing"
			e.template.Status.AcceptedHash, e.template.Status.InvalidOfferings = "a", []v1alpha1.InvalidOfferings{{Count: 1}}
			got, again, err := e.Examine(t.Context(), e.template, e.types)
			if (err != nil) != tc.fails || again != 0 {
				t.Fatalf("got %v, again after %s, want an error: %t", err, again, tc.fails)
			}
			if kept := got.Hash == "a" && len(got.Invalid) == 1; kept == tc.fails {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A missing bootstrap template is an error that names the field.
func TestReadBootstrap(t *testing.T) {
	e := newExamining(t)
	ref := &e.template.Spec.Template.Spec.Bootstrap.ConfigRef
	*ref = *e.template.Spec.Template.Spec.InfrastructureRef // any kind
	ref.Name = "missing"
	want := "KarpenterMachineTemplate general: spec.template.spec.bootstrap.configRef: "
	if _, err := ReadBases(t.Context(), e.clusters, e.template); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// The reason of a condition says what to look at.
func TestReasons(t *testing.T) {
	for want, problem := range map[string]error{
		v1alpha1.ReasonSecretNotAllowed:   tenancy.Allowed{Cluster: fixture.Served, Own: tenancy.NewOwn()}.Bootstrap("other-kubeconfig"),
		v1alpha1.ReasonReferenceNotFound:  apierrors.NewNotFound(schema.GroupResource{}, "x"),
		v1alpha1.ReasonObjectsNotReadable: reference.Unlisted{},
		v1alpha1.ReasonNameTaken:          nameTakenError{errors.New("x")},
		v1alpha1.ReasonTemplatesRejected:  rejectedError{errors.New("x")},
		v1alpha1.ReasonPatchesFailed:      errors.New("x"),
	} {
		if got := ReasonOf(fmt.Errorf("KarpenterMachineTemplate general: %w", problem)); got != want {
			t.Errorf("%v: got %s, want %s", problem, got, want)
		}
	}
}

// Of the answers of an API server, only those that say something about the object reject it.
func TestRejections(t *testing.T) {
	kind := schema.GroupResource{Resource: "testmachinetemplates"}
	for name, tc := range map[string]struct {
		err        error
		name, hash string // of the object; x and none if empty
		rejected   bool
		unanswered bool
	}{
		"accepted":         {},
		"it exists":        {err: apierrors.NewAlreadyExists(kind, "workers"), name: "workers"},
		"another exists":   {err: apierrors.NewAlreadyExists(kind, "workers"), name: "workers", hash: "a", rejected: true},
		"it existed":       {err: apierrors.NewAlreadyExists(kind, "x"), unanswered: true},
		"invalid":          {err: apierrors.NewInvalid(schema.GroupKind{Kind: "TestMachineTemplate"}, "x", nil), rejected: true},
		"an unknown field": {err: apierrors.NewBadRequest("strict decoding error"), rejected: true},
		"a webhook's no":   {err: apierrors.NewForbidden(kind, "x", errors.New("no")), rejected: true},
		"a broken webhook": {err: apierrors.NewInternalError(errors.New("no")), unanswered: true},
		"too many":         {err: apierrors.NewTooManyRequests("later", 1), unanswered: true},
		"a timeout":        {err: context.DeadlineExceeded, unanswered: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExamining(t)
			e.answer = func(string) error { return tc.err }
			generated := object("infrastructure.cluster.x-k8s.io/v1beta2", "TestMachineTemplate", fixture.Served.Namespace, lo.CoalesceOrEmpty(tc.name, "x"), map[string]any{})
			if tc.hash != "" {
				generated.SetLabels(map[string]string{v1alpha1.TemplateHashLabel: tc.hash})
			}
			rejected, err := e.dryRun(t.Context(), generated)
			if (rejected != nil) != tc.rejected || (err != nil) != tc.unanswered {
				t.Errorf("got %v and %v, want rejected: %t, unanswered: %t", rejected, err, tc.rejected, tc.unanswered)
			}
			if rejected != nil && strings.Contains(rejected.Error(), `"x"`) {
				t.Errorf("the message has the name of the object, which differs for each: %s", rejected)
			}
		})
	}
}
