// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// status returns the body of an error as the API server sends it.
func status(code int, reason, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
}

func TestJudge(t *testing.T) {
	const (
		clusters = "/apis/cluster.x-k8s.io/v1beta2/clusters/c"
		pool     = "/k8s/clusters/c-1/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machinepools/p"
		similar  = "/apis/cluster.x-k8s.io/v1beta2/machinesets"
	)
	for name, tc := range map[string]struct {
		code       int
		path, body string
		want       verdict
	}{
		"an object":               {code: 200, path: machines, want: answering},
		"a created object":        {code: 201, path: machines, want: answering},
		"no right":                {code: 403, path: machines, want: answering},
		"no object":               {code: 404, path: machines, want: answering},
		"a conflict":              {code: 409, path: machines, want: answering},
		"too old":                 {code: 410, path: machines, want: answering},
		"an invalid object":       {code: 422, path: machines, want: answering},
		"a refused token":         {code: 401, path: machines, want: failing},
		"too many requests":       {code: 429, path: machines, want: busy},
		"a gateway without route": {code: 502, path: clusters, body: "<html>bad gateway</html>", want: failing},
		"a gateway, for an instance": {
			code: 503, path: instances, body: "upstream connect error", want: failing,
		},
		"a timeout":            {code: 504, path: clusters, body: status(504, "Timeout", "request did not complete within the allotted timeout"), want: failing},
		"a server that ends":   {code: 503, path: clusters, body: status(503, "ServiceUnavailable", "apiserver is shutting down"), want: failing},
		"etcd, for Machines":   {code: 500, path: machines, body: status(500, "", "etcdserver: request timed out"), want: failing},
		"etcd, for a pool":     {code: 500, path: pool, body: status(500, "", "etcdserver: request timed out"), want: failing},
		"etcd, for a Cluster":  {code: 500, path: clusters, body: status(500, "", "etcdserver: request timed out"), want: answering},
		"a kind that is alike": {code: 500, path: similar, body: status(500, "", "etcdserver: request timed out"), want: answering},
		"an admission webhook that does not answer": {
			code: 500, path: instances, want: answering,
			body: status(500, "InternalError", `Internal error occurred: failed calling webhook "validation.awsmachine.infrastructure.x-k8s.io": failed to call webhook: Post "https://capa-webhook-service.capa-system.svc:443/validate": no endpoints available for service "capa-webhook-service"`),
		},
		"an admission webhook of Machines that does not answer": {
			code: 500, path: machines, want: answering,
			body: status(500, "InternalError", `Internal error occurred: failed calling webhook "validation.machine.cluster.x-k8s.io": failed to call webhook: context deadline exceeded`),
		},
		"an admission webhook that denies with a code of its own": {
			code: 503, path: machines, want: answering,
			body: status(503, "", `admission webhook "policy.example.com" denied the request: try again later`),
		},
		"the same in protobuf": {code: 503, path: machines, body: "k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12\x4f\x1a\x4dadmission webhook \"policy.example.com\" denied the request", want: answering},
		"a conversion webhook that does not answer": {
			code: 500, path: machines, want: answering,
			body: status(500, "", "conversion webhook for cluster.x-k8s.io/v1beta1, Kind=Machine failed: Post ..."),
		},
		"a provider's kind, in protobuf":              {code: 503, path: instances, body: "k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12\x00", want: answering},
		"a provider's kind whose cache is not filled": {code: 503, path: instances, body: status(503, "ServiceUnavailable", "the server is currently unable to handle the request"), want: answering},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://management"+tc.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response := &http.Response{StatusCode: tc.code, Body: io.NopCloser(strings.NewReader(tc.body))}
			if got := judge(request, response); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
			if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != tc.body {
				t.Errorf("the body is %q afterwards, with error %v, want %q", rest, err, tc.body)
			}
		})
	}
}

// A watch is identified by what it selects, so that one that is open does not hide another one that is not.
func TestWatchOf(t *testing.T) {
	for name, tc := range map[string]struct {
		url, accept, want string
	}{
		"no watch":                        {url: machines},
		"a watch that is turned off":      {url: machines + "?watch=false"},
		"of all Machines":                 {url: machines + "?watch=true&resourceVersion=7", want: machines},
		"in the other notation":           {url: machines + "?watch=1", want: machines},
		"of Machines with a label":        {url: machines + "?watch=true&labelSelector=a%3Db", want: machines + " a=b"},
		"of Machines with a name":         {url: machines + "?watch=true&fieldSelector=metadata.name%3Dm", want: machines + " metadata.name=m"},
		"with both selectors":             {url: machines + "?watch=true&fieldSelector=f&labelSelector=l", want: machines + " l f"},
		"of the metadata":                 {url: machines + "?watch=true", accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", want: machines + " metadata"},
		"of instances":                    {url: instances + "?watch=true"},
		"of bootstrap objects":            {url: "/apis/bootstrap.cluster.x-k8s.io/v1beta2/kubeadmconfigs?watch=true"},
		"of control planes":               {url: "/apis/controlplane.cluster.x-k8s.io/v1beta2/kubeadmcontrolplanes?watch=true"},
		"of a kind with a similar group":  {url: "/apis/infrastructure.example.com/v1/things?watch=true", want: "/apis/infrastructure.example.com/v1/things"},
		"of the NodeClaims of Karpenter":  {url: "/apis/karpenter.sh/v1/nodeclaims?watch=true", want: "/apis/karpenter.sh/v1/nodeclaims"},
		"of Machines in the namespace":    {url: "/apis/cluster.x-k8s.io/v1beta2/namespaces/infrastructure/machines?watch=true", want: "/apis/cluster.x-k8s.io/v1beta2/namespaces/infrastructure/machines"},
		"of templates of this operator's": {url: "/apis/karpenter.cluster.x-k8s.io/v1alpha1/karpentermachinetemplates?watch=true", want: "/apis/karpenter.cluster.x-k8s.io/v1alpha1/karpentermachinetemplates"},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://management"+tc.url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Accept", tc.accept)
			if got := watchOf(request); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// How a watch ends decides whether what its cache lacks may exist.
func TestEndsOfWatches(t *testing.T) {
	for name, tc := range map[string]struct {
		do                     func(*world)
		interrupted, disturbed bool
	}{
		"it cannot be opened, and other requests are answered": {do: func(w *world) {
			w.do(w.t.Context(), machines+watch, 0, nil)
			w.do(w.t.Context(), machines, 200, nil)
		}, interrupted: true, disturbed: true},
		"it fails in the server, and other requests are answered": {do: func(w *world) {
			w.do(w.t.Context(), machines+watch, 503, nil)
			w.do(w.t.Context(), machines, 200, nil)
		}, interrupted: true, disturbed: true},
		"it is refused for a moment": {do: func(w *world) { w.do(w.t.Context(), machines+watch, 429, nil) }, disturbed: true},
		"it stays refused": {do: func(w *world) {
			w.do(w.t.Context(), machines+watch, 429, nil)
			w.pass(reopen + time.Second)
		}, interrupted: true, disturbed: true},
		"its resource version is too old": {do: func(w *world) { w.do(w.t.Context(), machines+watch, 410, nil) }},
		"its resource version is too old, and it is not opened again": {do: func(w *world) {
			w.do(w.t.Context(), machines+watch, 410, nil)
			w.pass(reopen + time.Second)
		}, interrupted: true, disturbed: true},
		"it was broken, and its kind no longer exists": {do: func(w *world) {
			drain(w.do(w.t.Context(), machines+watch, 200, broken{}))
			w.do(w.t.Context(), machines+watch, 404, nil)
		}, disturbed: true},
		"it breaks, and is refused": {do: func(w *world) {
			drain(w.do(w.t.Context(), machines+watch, 200, broken{}))
			w.do(w.t.Context(), machines+watch, 429, nil)
		}, interrupted: true, disturbed: true},
		"it is refused repeatedly": {do: func(w *world) {
			for range 3 {
				w.do(w.t.Context(), machines+watch, 429, nil)
				w.pass(reopen / 2)
			}
		}, interrupted: true, disturbed: true},
		"its end is late": {do: func(w *world) {
			drain(w.do(w.t.Context(), machines+watch, 200, nil))
			w.pass(reopen + time.Second)
			w.do(w.t.Context(), machines+watch, 200, nil)
		}, disturbed: true},
		"it breaks after its end": {do: func(w *world) {
			drain(w.do(w.t.Context(), machines+watch, 200, nil))
			w.do(w.t.Context(), machines+watch, 0, nil)
		}, interrupted: true, disturbed: true},
		"the client closes it to open it again": {do: func(w *world) { closeBody(w, w.do(w.t.Context(), machines+watch, 200, broken{})) }},
		"the client closes it and does not return": {do: func(w *world) {
			closeBody(w, w.do(w.t.Context(), machines+watch, 200, broken{}))
			w.pass(reopen + time.Second)
		}, interrupted: true, disturbed: true},
		"the client stops it and closes it": {do: func(w *world) {
			ctx, cancel := context.WithCancel(w.t.Context())
			body := w.do(ctx, machines+watch, 200, broken{})
			cancel()
			closeBody(w, body)
			w.pass(time.Minute)
		}},
		"that of instances is closed": {do: func(w *world) { closeBody(w, w.do(w.t.Context(), instances+watch, 200, broken{})); w.pass(time.Minute) }},
		"that of instances ends":      {do: func(w *world) { drain(w.do(w.t.Context(), instances+watch, 200, nil)); w.pass(time.Minute) }},
		"it is closed after it has ended": {do: func(w *world) {
			body := w.do(w.t.Context(), machines+watch, 200, broken{})
			drain(body)
			closeBody(w, body)
		}, interrupted: true, disturbed: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.do(w)
			w.expect(t, tc.interrupted, tc.disturbed)
		})
	}
}

func closeBody(w *world, body io.Closer) {
	w.t.Helper()
	if err := body.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// The error counts the watches that are not open, and names the same one each time.
func TestErrorOfSeveralWatches(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/api/v1/pods", "/api/v1/nodes", machines} {
		drain(w.do(t.Context(), path+watch, 200, broken{}))
	}
	drain(w.do(t.Context(), "/api/v1/events"+watch, 200, nil)) // it has ended without a failure
	w.pass(5 * time.Second)
	want := "the management cluster https://management cannot be reached, or the cache of it is behind, for 5s: " +
		"3 watches are not open, such as that of /api/v1/nodes: it has ended: connection reset by peer: "
	for range 10 {
		if err := w.connection.Err(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Fatalf("got %v, want %q", err, want)
		}
	}
}

// The error names what has failed first, until a request is answered or the watch is opened again.
func TestErrorOfTheFirstFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(*world)
		want string
	}{
		"two requests": {do: func(w *world) {
			w.do(w.t.Context(), machines, 0, nil)
			w.do(w.t.Context(), clusters, 503, nil)
		}, want: "GET " + machines + ": connection refused"},
		"a watch that cannot be opened again": {do: func(w *world) {
			drain(w.do(w.t.Context(), machines+watch, 200, broken{}))
			w.do(w.t.Context(), machines+watch, 0, nil)
		}, want: "it has ended: connection reset by peer"},
		"a watch that had ended before": {do: func(w *world) {
			drain(w.do(w.t.Context(), machines+watch, 200, nil))
			w.do(w.t.Context(), machines+watch, 0, nil)
		}, want: "GET " + machines + ": connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.do(w)
			if err := w.connection.Err(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// The transport can be found below another one, and passes on what the API server answers.
func TestTransport(t *testing.T) {
	w := newWorld(t)
	unwrapped := w.connection.Transport(w.api).(interface{ WrappedRoundTripper() http.RoundTripper }).WrappedRoundTripper()
	if unwrapped != http.RoundTripper(w.api) {
		t.Errorf("got %v, want the wrapped transport", unwrapped)
	}
	body := w.do(t.Context(), machines+watch, 200, strings.NewReader("event"))
	if text, err := io.ReadAll(body); err != nil || string(text) != "event" {
		t.Errorf("got %q and %v", text, err)
	}
}

// Message returns other errors as they are.
func TestMessageOfAnotherError(t *testing.T) {
	if got := Message(errors.New("no right")); got != "no right" {
		t.Errorf("got %q", got)
	}
}
