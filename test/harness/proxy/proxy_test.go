// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const testDelay = 200 * time.Millisecond

// setup is a proxy in front of a server that echoes the identity of clients.
type setup struct {
	proxy  *Proxy
	client *http.Client
	url    string
	// writes counts the requests with POST that the server got.
	writes atomic.Int32
	// next makes the server send another line of each watch.
	next chan struct{}
}

func newSetup(t *testing.T) *setup {
	t.Helper()
	s := &setup{next: make(chan struct{})}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			s.writes.Add(1)
		case r.URL.Path == "/watch":
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "event\n")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-s.next:
				case <-r.Context().Done():
				}
			}
		default:
			_, _ = io.WriteString(w, r.Header.Get("Authorization")+" as "+r.Header.Get("Impersonate-User"))
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)

	direct, through := filepath.Join(t.TempDir(), "direct"), filepath.Join(t.TempDir(), "through")
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{
		Server:                   server.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	config.AuthInfos["u"] = &api.AuthInfo{Token: "secret", Impersonate: "operator"}
	config.Contexts["x"] = &api.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, direct); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.proxy, err = New(direct, testDelay); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.proxy.WriteKubeconfig(direct, through); err != nil {
		t.Fatal(err)
	}
	client, err := clientcmd.BuildConfigFromFlags("", through)
	if err != nil {
		t.Fatal(err)
	}
	s.url = client.Host
	if s.client, err = rest.HTTPClientFor(client); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// send sends a request, and returns the status and the body of the answer.
func (s *setup) send(t *testing.T, method string) (status, body string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, s.url, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close() //nolint:errcheck // It is only read.
	content, err := io.ReadAll(response.Body)
	return response.Status, string(content), err
}

// watch begins a watch, and returns a function that waits for the next line.
func (s *setup) watch(t *testing.T) func() error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	lines := bufio.NewReader(response.Body)
	return func() error {
		_, err := lines.ReadString('\n')
		return err
	}
}

func (s *setup) expectPass(t *testing.T) {
	t.Helper()
	if _, body, err := s.send(t, http.MethodGet); err != nil || body != "Bearer secret as operator" {
		t.Errorf("got the answer %q (%v), want that with the client's identity", body, err)
	}
}

func TestPass(t *testing.T) {
	s := newSetup(t)
	s.expectPass(t)
	event := s.watch(t)
	for range 3 {
		if err := event(); err != nil {
			t.Fatalf("the watch ends: %v", err)
		}
		s.next <- struct{}{}
	}
	if got := s.proxy.Affected(); got != 0 {
		t.Errorf("%d requests and connections are affected, want 0", got)
	}
}

func TestCut(t *testing.T) {
	s := newSetup(t)
	event := s.watch(t)
	if err := event(); err != nil {
		t.Fatal(err)
	}
	s.proxy.Set(Cut)
	if err := event(); err == nil {
		t.Error("the watch continues")
	}
	if status, _, err := s.send(t, http.MethodPost); err == nil {
		t.Errorf("a request is answered with %s", status)
	}
	if got := s.writes.Load(); got != 0 {
		t.Errorf("%d requests reach the server", got)
	}
	if got := s.proxy.Affected(); got < 2 {
		t.Errorf("%d connections are affected, want the one of the watch and that of the request", got)
	}
	s.proxy.Set(Pass)
	s.expectPass(t)
}

func TestDelay(t *testing.T) {
	s := newSetup(t)
	s.expectPass(t)
	s.proxy.Set(Delay)
	began := time.Now()
	s.expectPass(t)
	if took := time.Since(began); took < 2*testDelay {
		t.Errorf("the answer takes %s, want %s in each direction", took, testDelay)
	}
	if s.proxy.Affected() == 0 {
		t.Error("nothing is affected")
	}
	s.proxy.Set(Pass)
	s.expectPass(t)
}

func TestDrop(t *testing.T) {
	s := newSetup(t)
	event := s.watch(t)
	if err := event(); err != nil {
		t.Fatal(err)
	}
	s.proxy.Set(Drop)
	if err := event(); err == nil {
		t.Error("the watch continues")
	}
	if status, _, err := s.send(t, http.MethodPost); err == nil {
		t.Errorf("the answer %s is delivered", status)
	}
	if got := s.writes.Load(); got == 0 {
		t.Error("the write does not reach the server")
	}
	s.proxy.Set(Pass)
	s.expectPass(t)
}

func TestRefuse(t *testing.T) {
	s := newSetup(t)
	event := s.watch(t)
	if err := event(); err != nil {
		t.Fatal(err)
	}
	s.proxy.Set(Refuse)
	status, _, err := s.send(t, http.MethodPost)
	if err != nil || status != "429 Too Many Requests" {
		t.Errorf("got %q (%v), want 429", status, err)
	}
	if got := s.writes.Load(); got != 0 {
		t.Errorf("%d requests reach the server", got)
	}
	s.next <- struct{}{}
	if err := event(); err != nil {
		t.Errorf("the watch ends: %v", err)
	}
	s.proxy.Set(Pass)
	s.expectPass(t)
}
