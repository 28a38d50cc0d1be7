// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-capi/karpenter-capi/api/v1alpha1"
	"github.com/karpenter-capi/karpenter-capi/internal/cli/view"
	"github.com/karpenter-capi/karpenter-capi/internal/clients"
	"github.com/karpenter-capi/karpenter-capi/test/harness/fixture"
)

// edit changes an object of the world before a command reads it. It returns false to leave the object out.
type edit func(client.Object) bool

// world returns a source of the objects in testdata/world.yaml, with changes.
func world(t *testing.T, changes ...edit) source {
	t.Helper()
	content, err := os.ReadFile("testdata/world.yaml")
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(kubescheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if review, is := object.(*authorizationv1.SubjectAccessReview); is {
				review.Status.Allowed = true
				return nil
			}
			return c.Create(ctx, object, options...)
		},
	})
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		object := objectOf(t, document)
		if keep(object, changes) {
			builder = builder.WithObjects(object)
		}
	}
	by := func(value func(client.Object) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{value(o)} }
	}
	builder = builder.
		WithIndex(&clusterv1.Machine{}, clients.ResourceField, by(clients.ResourceOf)).
		WithIndex(&clusterv1.MachineSet{}, clients.ResourceField, by(clients.ResourceOf)).
		WithIndex(&clusterv1.MachineDeployment{}, clients.TopologyEntryField, fixture.EntryOf).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimResourceField, by(func(o client.Object) string { return o.GetAnnotations()[v1alpha1.ScalableResourceAnnotation] })).
		WithIndex(&karpv1.NodeClaim{}, clients.NodeClaimTemplateField, by(func(o client.Object) string { return o.(*karpv1.NodeClaim).Spec.NodeClassRef.Name })).
		WithIndex(&corev1.Event{}, "involvedObject.uid", by(func(o client.Object) string { return string(o.(*corev1.Event).InvolvedObject.UID) })).
		WithIndex(&coordinationv1.Lease{}, "metadata.name", by(client.Object.GetName))
	server := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(server.Close)
	both := served{fixture.Cluster{Client: builder.Build()}, &rest.Config{Host: server.URL}}
	return source{
		connect: func(context.Context, *view.Options) (*clients.Clusters, error) {
			return &clients.Clusters{Cluster: fixture.Served, Workload: both, Management: both}, nil
		},
		workload: func(*view.Options) (client.Client, error) { return both.GetClient(), nil },
		now:      func() time.Time { return fixture.Noon },
	}
}

// served is a cluster with an API server for what clients of objects do not read.
type served struct {
	fixture.Cluster
	config *rest.Config
}

// GetConfig returns the configuration of clients.
func (s served) GetConfig() *rest.Config { return s.config }

// answer is the answer of the API server of the world: its version, and the logs of the operator.
func answer(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/version":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}`)
	case r.URL.Path != "/api/v1/namespaces/karpenter/pods/operator-1/log":
		http.NotFound(w, r)
	case r.URL.Query().Get("previous") == "true":
		_, _ = io.WriteString(w, logged("panic: "))
	default:
		_, _ = io.WriteString(w, logged(""))
	}
}

// intercepted returns a source whose clients call functions.
func intercepted(from source, funcs interceptor.Funcs) source {
	connect := from.connect
	from.connect = func(ctx context.Context, o *view.Options) (*clients.Clusters, error) {
		found, err := connect(ctx, o)
		wrap := func(c cluster.Cluster) cluster.Cluster {
			return served{fixture.Cluster{Client: interceptor.NewClient(c.GetClient().(client.WithWatch), funcs)}, c.GetConfig()}
		}
		return &clients.Clusters{Cluster: found.Cluster, Workload: wrap(found.Workload), Management: wrap(found.Management)}, err
	}
	return from
}

func keep(object client.Object, changes []edit) bool {
	for _, apply := range changes {
		if !apply(object) {
			return false
		}
	}
	return true
}

// objectOf returns the object of a document, in its Go type if the scheme has one.
func objectOf(t *testing.T, document string) client.Object {
	t.Helper()
	content := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &content.Object); err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
	typed, err := kubescheme.Scheme.New(content.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		return content
	}
	if err := yaml.UnmarshalStrict([]byte(document), typed); err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
	return typed.(client.Object)
}

// named changes the object of a kind with a name.
func named[T client.Object](name string, do func(T)) edit {
	return func(o client.Object) bool {
		if typed, is := o.(T); is && o.GetName() == name {
			do(typed)
		}
		return true
	}
}

// without leaves out the objects of a kind with a name.
func without[T client.Object](name string) edit {
	return func(o client.Object) bool {
		_, is := o.(T)
		return !is || o.GetName() != name
	}
}

// runIn runs a command in a world, and returns its output, its messages and its exit code.
func runIn(t *testing.T, from source, arguments ...string) (string, string, int) {
	t.Helper()
	streams, _, out, messages := genericiooptions.NewTestIOStreams()
	command := newCommand(streams, from)
	command.SetArgs(arguments)
	err := command.ExecuteContext(t.Context())
	if err != nil {
		messages.WriteString(err.Error())
	}
	return out.String(), messages.String(), ExitCode(err)
}
