// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// errCut is what a client gets while its network is cut. client-go knows the text.
var errCut = errors.New("connection reset by peer")

// network is what is between a client and an API server. While it is cut, requests fail, those that the API server has
// received lose their answer, and watches break.
type network struct {
	mu sync.Mutex
	// up ends when the network is cut.
	up  context.Context
	end context.CancelFunc
	// lost is how many requests have failed.
	lost int
}

func newNetwork() *network {
	l := &network{}
	l.restore()
	return l
}

// cut makes all requests fail until restore.
func (l *network) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

func (l *network) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up, l.end = context.WithCancel(context.Background())
}

// wrap returns a transport that uses the network.
func (l *network) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		up := l.current()
		if up.Err() != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, l.lose()
		}
		ctx, cancel := context.WithCancel(r.Context())
		stop := context.AfterFunc(up, cancel)
		release := func() { stop(); cancel() }
		response, err := next.RoundTrip(r.WithContext(ctx))
		switch {
		case up.Err() != nil:
			if err == nil {
				_ = response.Body.Close()
			}
			release()
			return nil, l.lose()
		case err != nil:
			release()
			return nil, err
		}
		response.Body = &answer{ReadCloser: response.Body, up: up, release: release}
		return response, nil
	})
}

func (l *network) current() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

// lose counts a request that fails, and returns how.
func (l *network) lose() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost++
	return errCut
}

// losses returns how many requests have failed.
func (l *network) losses() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// answer is the body of a response, such as the events of a watch.
type answer struct {
	io.ReadCloser
	up      context.Context
	release func()
}

// Read implements io.Reader.
func (a *answer) Read(into []byte) (int, error) {
	n, err := a.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) && a.up.Err() != nil {
		err = errCut
	}
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	defer a.release()
	return a.ReadCloser.Close()
}
