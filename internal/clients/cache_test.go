// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/karpenter-capi/karpenter-capi/internal/reference"
	"github.com/karpenter-capi/karpenter-capi/internal/tenancy"
)

var (
	listed   = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "GoodTemplate"}
	unlisted = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "BadTemplate"}
)

// read gets an object and lists a kind, and returns the errors, and how long that took.
func read(ctx context.Context, from client.Reader, kind schema.GroupVersionKind) (took time.Duration, get, list error) {
	began := time.Now()
	object, objects := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	object.SetGroupVersionKind(kind)
	objects.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	get = client.IgnoreNotFound(from.Get(ctx, types.NamespacedName{Namespace: "fleet", Name: "x"}, object))
	list = from.List(ctx, objects, client.InNamespace("fleet"))
	return time.Since(began), get, list
}

// While one kind of a provider and Secrets cannot be listed, the cache is filled, and all other kinds can be read.
func TestAKindThatCannotBeListed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch {
		case strings.HasSuffix(request.URL.Path, "badtemplates"), strings.HasSuffix(request.URL.Path, "secrets"):
			http.Error(w, "no", http.StatusInternalServerError)
		case request.URL.Query().Get("sendInitialEvents") != "":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity) // so that the client lists instead
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
		case request.URL.Query().Get("watch") != "":
			<-request.Context().Done()
		default:
			w.Header().Set("Content-Type", "application/json")
			kind := map[string]string{"clusters": "ClusterList", "goodtemplates": "GoodTemplateList"}[request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]]
			_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": strings.Split(request.URL.Path, "/")[2] + "/" + strings.Split(request.URL.Path, "/")[3], "kind": kind, "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}})
		}
	}))
	defer server.Close()
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{listed, unlisted, clusterv1.GroupVersion.WithKind("Cluster"), clusterv1.GroupVersion.WithKind("MachineDeployment"), SecretMetadata().GroupVersionKind()} {
		mapper.Add(kind, meta.RESTScopeNamespace)
		mapper.Add(kind.GroupVersion().WithKind(kind.Kind+"List"), meta.RESTScopeNamespace)
	}
	mapper.Add(reference.CRD().GroupVersionKind(), meta.RESTScopeRoot)
	management, err := newManagementCache(types.NamespacedName{Namespace: "fleet", Name: "served"}, tenancy.Rules{SecretLabel: labels.Everything()})(&rest.Config{Host: server.URL}, cache.Options{Scheme: scheme.Scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- management.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, get, list := read(soon, management, unlisted)
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "SecretList"})
	for kind, err := range map[string]error{"BadTemplate.infrastructure.cluster.x-k8s.io": errors.Join(get, list), "Secret": management.List(soon, secrets)} {
		if found := (reference.Unlisted{}); !errors.As(err, &found) || found.Kind.String() != kind {
			t.Errorf("got %v for kind %s, which cannot be listed", err, kind)
		}
	}
	in10s, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if !management.WaitForCacheSync(in10s) {
		t.Error("the cache is never filled")
	}
	if _, get, list := read(in10s, management, listed); get != nil || list != nil {
		t.Errorf("got %v and %v for another kind", get, list)
	}
	if err := management.List(in10s, &clusterv1.ClusterList{}); err != nil {
		t.Errorf("got %v for Clusters", err)
	}
}

// Reads wait only once for a kind, and find its objects as soon as the API server has listed them.
func TestReadsWaitOnlyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		informer := controllertest.NewFakeInformer()
		c := newOnDemand(&informertest.FakeInformers{InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{unlisted: informer}})
		took, get, list := read(t.Context(), c, unlisted)
		if !errors.As(get, &reference.Unlisted{}) || !errors.As(list, &reference.Unlisted{}) || took < patience || took > patience+time.Second {
			t.Errorf("got %v and %v after %s, want errors after %s", get, list, took, patience)
		}
		if took, get, _ := read(t.Context(), c, unlisted); !errors.As(get, &reference.Unlisted{}) || took > time.Second {
			t.Errorf("got %v after %s, want an error at once", get, took)
		}
		if took, get, list := read(t.Context(), c, listed); get != nil || list != nil || took > 0 {
			t.Errorf("got %v and %v after %s for another kind", get, list, took)
		}
		for _, awaits := range []bool{true, false} {
			_, get, _ := read(t.Context(), c, unlisted)
			if found := (reference.Unlisted{}); !errors.As(get, &found) || found.Awaited != awaits {
				t.Errorf("got %#v, want that the list can still arrive: %t", get, awaits)
			}
			time.Sleep(awaited)
		}
		informer.Synced()
		if took, get, list := read(t.Context(), c, unlisted); get != nil || list != nil || took > 0 {
			t.Errorf("got %v and %v after %s for a kind that is listed now", get, list, took)
		}
	})
}
