// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Transport returns a transport that records what happens to the requests of another one. It is given to
// rest.Config.Wrap.
func (c *Connection) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{connection: c, next: next}
}

type transport struct {
	connection *Connection
	next       http.RoundTripper
}

// WrappedRoundTripper returns the transport that this one wraps, so that others can find it.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip sends a request, and records its answer.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	t.connection.countWrite(request)
	response, err := t.next.RoundTrip(request)
	watch := watchOf(request)
	if err != nil {
		if errors.Is(request.Context().Err(), context.Canceled) {
			return response, err // nobody waits for the answer
		}
		t.failed(watch, fmt.Sprintf("%s %s: %s", request.Method, request.URL.Path, err))
		return response, err
	}
	switch cause := fmt.Sprintf("%s %s: %s", request.Method, request.URL.Path, response.Status); judge(request, response) {
	case failing:
		t.failed(watch, cause)
	case busy:
		if watch != "" {
			t.connection.refused(watch, cause)
		}
	case answering:
		t.connection.answered()
		if watch != "" {
			t.watch(request.Context(), watch, response, cause)
		}
	}
	return response, nil
}

// failed records a request without a useful answer. A watch that could not be opened leaves its cache
// behind, also when other requests are answered.
func (t *transport) failed(watch, cause string) {
	if watch != "" {
		t.connection.broken(watch, cause)
		return
	}
	t.connection.failedWith(cause)
}

// watch records the answer to a watch.
func (t *transport) watch(ctx context.Context, watch string, response *http.Response, cause string) {
	switch response.StatusCode {
	case http.StatusOK:
		t.connection.opened(watch)
		response.Body = &stream{ReadCloser: response.Body, connection: t.connection, watch: watch, ctx: ctx}
	case http.StatusNotFound:
		t.connection.gone(watch) // the kind no longer exists
	case http.StatusGone:
		t.connection.closed(watch, cause) // it is listed again
	default:
		t.connection.rejected(watch, cause)
	}
}

// verdict is what an answer says about the API server.
type verdict int

const (
	answering verdict = iota
	busy
	failing
)

// judge returns what an answer says about the API server. A refused token shows that no request of this
// process is answered, whatever it asks for.
//
// An error of the server concerns all requests if a gateway reports it, or the API server as a whole: 502, 503
// and 504. Other errors concern the kind of the request, so they only count if that is Machines or
// MachinePools. A webhook that does not answer says nothing about the API server, and neither does an error
// that the API server has with the kind of a provider, such as because of its conversion webhook.
func judge(request *http.Request, response *http.Response) verdict {
	switch code := response.StatusCode; {
	case code == http.StatusTooManyRequests:
		return busy
	case code == http.StatusUnauthorized:
		return failing
	case code < http.StatusInternalServerError:
		return answering
	}
	body := peek(response)
	switch {
	case namesWebhook(body), isStatus(body) && alone(request):
		return answering
	case response.StatusCode == http.StatusBadGateway, response.StatusCode == http.StatusServiceUnavailable, response.StatusCode == http.StatusGatewayTimeout, ofMachines(request.URL.Path):
		return failing
	}
	return answering
}

// peek returns the first bytes of a body, which can still be read.
func peek(response *http.Response) []byte {
	const enough = 16 << 10
	first, _ := io.ReadAll(io.LimitReader(response.Body, enough)) // an error follows when the rest is read
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first), response.Body), response.Body}
	return first
}

// namesWebhook reports whether an error is one of a webhook: that of an admission webhook that does not answer
// or denies the request (k8s.io/apiserver: pkg/util/webhook/error.go and
// pkg/admission/plugin/webhook/errors/statuserror.go), or of a conversion webhook
// (k8s.io/apiextensions-apiserver: pkg/apiserver/conversion/webhook_converter.go). The code of a denial is that
// of the webhook.
func namesWebhook(body []byte) bool {
	for _, words := range []string{"failed calling webhook", "admission webhook", "conversion webhook for"} {
		if bytes.Contains(body, []byte(words)) {
			return true
		}
	}
	return false
}

// isStatus reports whether the API server itself has answered with an error, as JSON or protobuf.
func isStatus(body []byte) bool {
	return bytes.Contains(body, []byte(`"kind":"Status"`)) || bytes.HasPrefix(body, []byte("k8s\x00"))
}

func isWatch(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// watchOf returns what identifies a watch among those of one cluster: the path and the selectors. It is
// empty for other requests, and for the watches of providers' kinds: one of these can fail alone, such as
// with its conversion webhook, and what their caches lack is read from the API server. It is empty for requests with
// the context of Apart, too.
func watchOf(request *http.Request) string {
	if !isWatch(request) || alone(request) {
		return ""
	}
	parts := []string{request.URL.Path}
	query := request.URL.Query()
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if value := query.Get(name); value != "" {
			parts = append(parts, value)
		}
	}
	// A client can have two caches of one kind: typed objects, and only their metadata.
	if strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata") {
		parts = append(parts, "metadata")
	}
	return strings.Join(parts, " ")
}

// apart is the key of the mark of Apart.
type apart struct{}

// Apart returns a context for requests of a kind that can fail alone: nothing is decided from what a cache of the kind lacks.
func Apart(ctx context.Context) context.Context { return context.WithValue(ctx, apart{}, true) }

// alone reports whether a failure of a request concerns only its kind.
func alone(request *http.Request) bool {
	return request.Context().Value(apart{}) != nil || ofProvider(request.URL.Path)
}

// providers are the first parts of the groups of providers' kinds.
var providers = []string{"infrastructure", "bootstrap", "controlplane"}

// ofProvider reports whether a path is one of a provider's kind.
func ofProvider(path string) bool {
	return slices.ContainsFunc(providers, func(group string) bool {
		return strings.Contains(path, "/apis/"+group+".cluster.x-k8s.io/")
	})
}

// stream is the body of a watch.
type stream struct {
	io.ReadCloser
	connection *Connection
	watch      string
	ctx        context.Context
	end        sync.Once
}

// Read reads events, and records how they end.
func (s *stream) Read(into []byte) (int, error) {
	n, err := s.ReadCloser.Read(into)
	if err == nil {
		return n, nil
	}
	s.end.Do(func() {
		switch {
		case s.ctx.Err() != nil: // the client has stopped it
		case errors.Is(err, io.EOF):
			s.connection.closed(s.watch, "it has ended")
		default:
			s.connection.broken(s.watch, "it has ended: "+err.Error())
		}
	})
	return n, err
}

// Close ends a watch. If the client ends it while events could follow, it is no longer needed, or is opened
// again at once.
func (s *stream) Close() error {
	s.end.Do(func() {
		if s.ctx.Err() == nil {
			s.connection.closed(s.watch, "it was closed")
		}
	})
	return s.ReadCloser.Close()
}
