// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

const group = "infrastructure.cluster.x-k8s.io"

// object returns an object in the namespace of the Cluster.
func object(kind, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion(group + "/v1")
	o.SetKind(kind)
	o.SetNamespace(fixture.Served.Namespace)
	o.SetName(name)
	return o
}

// definition returns the CustomResourceDefinition of a kind.
func definition(plural string) *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName(plural + "." + group)
	crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1"})
	return crd
}

// world is a cluster with a claim, its Machine, and a remediation template.
type world struct {
	client.Client
	clusters *clients.Clusters
	template *v1alpha1.KarpenterMachineTemplate
	machine  *clusterv1.Machine
	// writes are the writes so far.
	writes []string
	// fails returns the errors of a write before and after it is executed.
	fails func(write string) (before, after error)
}

func newWorld(objects ...client.Object) *world {
	w := &world{machine: fixture.Machine(time.Hour), template: &v1alpha1.KarpenterMachineTemplate{}}
	w.machine.Namespace, w.machine.Spec.ClusterName = fixture.Served.Namespace, fixture.Served.Name
	w.template.Spec.Remediation = &v1alpha1.Remediation{TemplateRef: clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: "TestRemediationTemplate", Name: "reboot"}}
	claim := fixture.Claim(time.Hour)
	claim.Finalizers = []string{karpv1.TerminationFinalizer}
	objects = append(objects, claim, definition("testremediations"), definition("testremediationtemplates"))
	do := func(what string, object client.Object, write func() error) error {
		what = fmt.Sprintf("%s %s", what, object.GetName())
		w.writes = append(w.writes, what)
		var before, after error
		if w.fails != nil {
			before, after = w.fails(what)
		}
		if before != nil {
			return before
		}
		return errors.Join(write(), after)
	}
	w.Client = interceptor.NewClient(fixture.WithUIDs(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithStatusSubresource(&karpv1.NodeClaim{}).Build()), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return do("create", object, func() error { return c.Create(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return do("patch", object, func() error { return c.Patch(ctx, object, patch, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return do("delete", object, func() error { return c.Delete(ctx, object, options...) })
		},
	})
	both := fixture.Cluster{Client: w.Client}
	w.clusters = &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}
	return w
}

func base() *unstructured.Unstructured {
	return object("TestRemediationTemplate", "reboot", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"strategy": "Reboot"}}}})
}

func (w *world) claim(t *testing.T) *karpv1.NodeClaim {
	t.Helper()
	claim := &karpv1.NodeClaim{}
	if err := w.Get(t.Context(), types.NamespacedName{Name: "c"}, claim); err != nil {
		t.Fatal(err)
	}
	return claim
}

func (w *world) restart(t *testing.T, operation string) (bool, error) {
	t.Helper()
	return Restart(t.Context(), w.clusters, w.template, w.machine, w.claim(t), operation)
}

// request returns the request of the Machine; nil if there is none.
func (w *world) request(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	found := object("TestRemediation", "", map[string]any{})
	err := w.Get(t.Context(), types.NamespacedName{Namespace: fixture.Served.Namespace, Name: "m"}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The request is the one that a MachineHealthCheck would create, with the restart and the claim for which it was created.
func TestRestartCreatesARequest(t *testing.T) {
	w := newWorld(base())
	if created, err := w.restart(t, "1"); !created || err != nil {
		t.Fatalf("got %t and %v", created, err)
	}
	got := w.request(t)
	got.SetResourceVersion("")
	want := object("TestRemediation", "m", map[string]any{"spec": map[string]any{"strategy": "Reboot"}})
	want.SetLabels(map[string]string{clusterv1.ClusterNameLabel: fixture.Served.Name})
	want.SetAnnotations(map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation: "reboot", clusterv1.TemplateClonedFromGroupKindAnnotation: "TestRemediationTemplate." + group,
		v1alpha1.RemediationOperationAnnotation: "c/1",
	})
	want.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": clusterv1.GroupVersion.String(), "kind": "Machine", "name": "m", "uid": "m"}}
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if named := w.claim(t).Annotations[v1alpha1.RemediationAnnotation]; named != "TestRemediation."+group+"/m/1" {
		t.Errorf("the claim names %s", named)
	}
	before := len(w.writes)
	if created, err := w.restart(t, "1"); created || err != nil || len(w.writes) != before {
		t.Errorf("again: got %t, %v and writes %v", created, err, w.writes)
	}
}

// The next restart first ends an earlier one.
func TestRestartAfterAnother(t *testing.T) {
	w := newWorld(base())
	if _, err := w.restart(t, "1"); err != nil {
		t.Fatal(err)
	}
	if created, err := w.restart(t, "2"); created || err == nil || errors.As(err, &Impossible{}) {
		t.Errorf("the first request is deleted: got %t and %v", created, err)
	}
	if created, err := w.restart(t, "2"); !created || err != nil {
		t.Errorf("it no longer exists: got %t and %v", created, err)
	}
	if got := w.request(t).GetAnnotations()[v1alpha1.RemediationOperationAnnotation]; got != "c/2" {
		t.Errorf("got a request of restart %s", got)
	}
}

// A restart that cannot succeed is not repeated, and any other is.
func TestRestartThatFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: "testremediations"}, "m", errors.New("no right"))
	for name, tc := range map[string]struct {
		objects    []client.Object
		kind       string
		fails      error
		impossible bool
		want       string
	}{
		"the template does not exist":    {impossible: true, want: "TestRemediationTemplate clusters/reboot does not exist"},
		"the kind does not exist":        {objects: []client.Object{base()}, kind: "OtherRemediationTemplate", impossible: true, want: "the management cluster has no kind OtherRemediation." + group},
		"the operator has no right":      {objects: []client.Object{base()}, fails: forbidden, impossible: true, want: "no right"},
		"the API server does not answer": {objects: []client.Object{base()}, fails: errors.New("no answer"), want: "creating TestRemediation clusters/m: no answer"},
		"another one creates a request":  {objects: []client.Object{base()}, fails: apierrors.NewAlreadyExists(schema.GroupResource{}, "m"), want: "already exists"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(tc.objects...)
			if tc.kind != "" {
				w.template.Spec.Remediation.TemplateRef.Kind = tc.kind
			}
			w.fails = func(write string) (error, error) {
				if strings.HasPrefix(write, "create ") {
					return tc.fails, nil
				}
				return nil, nil
			}
			created, err := w.restart(t, "1")
			if created || err == nil || errors.As(err, &Impossible{}) != tc.impossible || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %t and %v, want %q, impossible: %t", created, err, tc.want, tc.impossible)
			}
		})
	}
}

// Requests of others stay: when a restart begins, when it ends, and when the annotation of a claim is behind.
func TestEndLeavesRequestsOfOthers(t *testing.T) {
	other := object("TestRemediation", "m", map[string]any{})
	w := newWorld(base(), other)
	if created, err := w.restart(t, "1"); created || err != nil || len(w.writes) > 0 {
		t.Errorf("got %t, %v and writes %v", created, err, w.writes)
	}
	for name, tc := range map[string]struct{ annotation, operation, claim, cluster string }{
		"a request of another creator": {annotation: "TestRemediation." + group + "/m/1"},
		"a request of a later restart": {annotation: "TestRemediation." + group + "/m/1", operation: "2", claim: "c", cluster: fixture.Served.Name},
		"a request of another claim":   {annotation: "TestRemediation." + group + "/m/1", operation: "1", claim: "d", cluster: fixture.Served.Name},
		"a request of another Cluster": {annotation: "TestRemediation." + group + "/m/1", operation: "1", claim: "c", cluster: "other"},
		"a kind that no longer exists": {annotation: "Removed." + group + "/m/1"},
		"an annotation of a user":      {annotation: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			other := object("TestRemediation", "m", map[string]any{})
			other.SetLabels(map[string]string{clusterv1.ClusterNameLabel: tc.cluster})
			if tc.operation != "" {
				other.SetAnnotations(map[string]string{v1alpha1.RemediationOperationAnnotation: tc.claim + "/" + tc.operation})
			}
			w := newWorld(base(), other)
			claim := w.claim(t)
			claim.Annotations = map[string]string{v1alpha1.RemediationAnnotation: tc.annotation}
			if err := w.Update(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			if err := End(t.Context(), w.clusters, claim); err != nil {
				t.Fatal(err)
			}
			if w.request(t) == nil {
				t.Error("the request was deleted")
			}
			if left := w.claim(t).Annotations; len(left) > 0 {
				t.Errorf("the claim has annotations %v", left)
			}
		})
	}
}

// A cache that is behind ends the restart that it shows, and no later one.
func TestEndWithAnOldClaim(t *testing.T) {
	w := newWorld(base())
	if _, err := w.restart(t, "1"); err != nil {
		t.Fatal(err)
	}
	old := w.claim(t)
	if _, err := w.restart(t, "2"); err == nil {
		t.Error("the first request is deleted before the second is created")
	}
	if _, err := w.restart(t, "2"); err != nil {
		t.Fatal(err)
	}
	if err := End(t.Context(), w.clusters, old); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if request := w.request(t); request == nil || w.claim(t).Annotations[v1alpha1.RemediationAnnotation] == "" {
		t.Errorf("the later restart has ended: %v", request)
	}
}

// After any interruption, a restart and its end are repeated until they succeed. There is never a request that no claim names,
// one request is created, and nothing is left.
func TestInterruptions(t *testing.T) {
	interrupted := errors.New("the process ends")
	for _, executed := range []bool{false, true} {
		for n := 1; ; n++ {
			w := newWorld(base())
			count, hit := 0, false
			w.fails = func(string) (error, error) {
				if count++; count != n {
					return nil, nil
				}
				hit = true
				if executed {
					return nil, interrupted
				}
				return interrupted, nil
			}
			repeat := func(do func() error) {
				t.Helper()
				for attempt := 0; ; attempt++ {
					err := do()
					if named := w.claim(t).Annotations[v1alpha1.RemediationAnnotation]; named == "" && w.request(t) != nil {
						t.Errorf("write %d, executed %t: no claim names the request", n, executed)
					}
					if err == nil {
						return
					}
					if attempt > 3 {
						t.Fatalf("write %d, executed %t: %v", n, executed, err)
					}
				}
			}
			repeat(func() error { _, err := w.restart(t, "1"); return err })
			if w.request(t) == nil {
				t.Fatalf("write %d, executed %t: there is no request", n, executed)
			}
			repeat(func() error { return End(t.Context(), w.clusters, w.claim(t)) })
			if left := w.request(t); left != nil || len(w.claim(t).Annotations) > 0 {
				t.Errorf("write %d, executed %t: left are %v and annotations %v", n, executed, left, w.claim(t).Annotations)
			}
			if !hit {
				if want := []string{"patch c", "create m", "delete m", "patch c"}; !slices.Equal(w.writes, want) {
					t.Errorf("got writes %v, want %v", w.writes, want)
				}
				break
			}
		}
	}
}
