// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	response, err := t.next.RoundTrip(request)
	watch := watchOf(request)
	if err != nil {
		if errors.Is(request.Context().Err(), context.Canceled) {
			return response, err // nobody waits for the answer
		}
		t.failed(watch, fmt.Sprintf("%s %s: %s", request.Method, request.URL.Path, err))
		return response, err
	}
	switch cause := fmt.Sprintf("%s %s: %s", request.Method, request.URL.Path, response.Status); judge(response.StatusCode) {
	case failing:
		t.failed(watch, cause)
	case busy:
		t.connection.disturb()
		if watch != "" {
			t.connection.closed(watch, cause)
		}
	case answering:
		t.connection.answered()
		switch {
		case watch != "":
			t.watch(request.Context(), watch, response, cause)
		case isWatch(request):
			response.Body = &stream{ReadCloser: response.Body, connection: t.connection, ctx: request.Context()}
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
	switch {
	case response.StatusCode == http.StatusOK:
		t.connection.opened(watch)
		response.Body = &stream{ReadCloser: response.Body, connection: t.connection, watch: watch, ctx: ctx}
	case response.StatusCode == http.StatusNotFound:
		t.connection.gone(watch) // the kind no longer exists
	case response.StatusCode == http.StatusGone:
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

// judge returns what a status code says about the API server. A refused token says that no request of this
// process is answered, whatever it asks for.
func judge(code int) verdict {
	switch {
	case code == http.StatusTooManyRequests:
		return busy
	case code == http.StatusUnauthorized || code >= http.StatusInternalServerError:
		return failing
	}
	return answering
}

func isWatch(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// watchOf returns what identifies a watch among those of one cluster: the path and the selectors. It is
// empty for other requests, and for the watches of providers' kinds: one of these can fail alone, such as
// with its conversion webhook, and what their caches lack is read from the API server.
func watchOf(request *http.Request) string {
	if !isWatch(request) {
		return ""
	}
	for _, group := range providers {
		if strings.Contains(request.URL.Path, "/apis/"+group+".cluster.x-k8s.io/") {
			return ""
		}
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

// providers are the first parts of the groups of providers' kinds.
var providers = []string{"infrastructure", "bootstrap", "controlplane"}

// stream is the body of a watch. The watch is empty if its end only disturbs.
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
		failed := !errors.Is(err, io.EOF)
		switch {
		case s.watch == "":
			if failed && s.ctx.Err() == nil {
				s.connection.disturb()
			}
		case s.ctx.Err() != nil: // the client has stopped it
			s.connection.gone(s.watch)
		case !failed:
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
		if s.ctx.Err() != nil || s.watch == "" {
			s.connection.gone(s.watch)
			return
		}
		s.connection.closed(s.watch, "it was closed")
	})
	return s.ReadCloser.Close()
}
