// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// server records how it was asked, and streams at /watch until it closes.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/watch") {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, r.URL.Path+"?"+r.URL.RawQuery+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Impersonate-User"))
	}))
	t.Cleanup(s.CloseClientConnections)
	return s
}

// kubeconfig returns the text of a kubeconfig for the server.
func (s *server) kubeconfig(path, user string) string {
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return fmt.Sprintf(`
clusters: [{name: c, cluster: {server: "%s%s", certificate-authority-data: %s}}]
users: [{name: u, user: {%s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, s.URL, path, ca, user)
}

// mounted is a file that is replaced as the kubelet does.
type mounted struct {
	t    *testing.T
	dir  string
	made int
}

func (m *mounted) path() string { return filepath.Join(m.dir, "..data", "kubeconfig") }

// set replaces the folder with the file by a symbolic link to a new one.
func (m *mounted) set(text string) {
	m.t.Helper()
	m.made++
	folder := fmt.Sprintf("..%d", m.made)
	temporary := filepath.Join(m.dir, "..data_tmp")
	for _, err := range []error{
		os.Mkdir(filepath.Join(m.dir, folder), 0o700),
		os.WriteFile(filepath.Join(m.dir, folder, "kubeconfig"), []byte(text), 0o600),
		os.Symlink(folder, temporary),
		os.Rename(temporary, filepath.Join(m.dir, "..data")),
	} {
		if err != nil {
			m.t.Fatal(err)
		}
	}
}

// load returns a client that follows the file and reads it for each request.
func load(t *testing.T, path string, report Report) (*rest.Config, *http.Client) {
	t.Helper()
	config, err := Load(path, report)
	if err != nil {
		t.Fatal(err)
	}
	config.Transport.(*follower).interval = 0
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return config, client
}

func get(t *testing.T, client *http.Client, url string) {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, response.Status, err)
	}
}

// Requests use the newest usable content of the file, and each change is reported once.
func TestFollow(t *testing.T) {
	one, two := newServer(t), newServer(t)
	file := &mounted{t: t, dir: t.TempDir()}
	file.set(one.kubeconfig("/k8s/clusters/a", "token: first"))
	var reports []string
	config, client := load(t, file.path(), func(err error) {
		if err != nil {
			reports = append(reports, strings.ReplaceAll(err.Error(), file.path(), "FILE"))
			return
		}
		reports = append(reports, "used")
	})
	ask := func() { t.Helper(); get(t, client, config.Host+"/api/v1/pods?limit=1") }

	ask()
	file.set(one.kubeconfig("/k8s/clusters/a", "token: second, as: jane"))
	ask()
	file.set("{{")
	ask()
	ask()
	file.set("{}")
	ask()
	file.set(one.kubeconfig("/k8s/clusters/a", "token: second, as: jane"))
	ask()
	if err := os.Remove(file.path()); err != nil {
		t.Fatal(err)
	}
	ask()
	file.set(two.kubeconfig("", "token: third"))
	ask()

	path := "/k8s/clusters/a/api/v1/pods?limit=1"
	second := path + " Bearer second jane"
	want := []string{path + " Bearer first ", second, second, second, second, second, second}
	if diff := cmp.Diff(want, one.asked); diff != "" {
		t.Errorf("the first server (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/api/v1/pods?limit=1 Bearer third "}, two.asked); diff != "" {
		t.Errorf("the second server (-want +got):\n%s", diff)
	}
	stays := "kubeconfig FILE: the content before it stays in use: "
	wantReports := []string{
		"used",
		stays + "it is no kubeconfig in YAML or JSON",
		stays + "invalid configuration: no configuration has been provided",
		"used",
		stays + "open FILE: no such file or directory",
		"used",
	}
	if len(reports) != len(wantReports) {
		t.Fatalf("got reports %q, want %q", reports, wantReports)
	}
	for i := range reports {
		if !strings.HasPrefix(reports[i], wantReports[i]) {
			t.Errorf("report %d is %q, want %q", i, reports[i], wantReports[i])
		}
	}
}

// A watch that began before a change goes on.
func TestWatchGoesOn(t *testing.T) {
	s := newServer(t)
	file := &mounted{t: t, dir: t.TempDir()}
	file.set(s.kubeconfig("", "token: first"))
	config, client := load(t, file.path(), func(error) {})
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_, _ = watch.Body.Read(make([]byte, 1))
		close(ended)
	}()
	file.set(s.kubeconfig("", "token: second"))
	get(t, client, config.Host+"/now")
	if diff := cmp.Diff([]string{"/now? Bearer second "}, s.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	select {
	case <-ended:
		t.Error("the watch has ended")
	default:
	}
	cancel()
	<-ended
	_ = watch.Body.Close()
}

// A file is read at most once in an interval.
func TestInterval(t *testing.T) {
	s := newServer(t)
	file := &mounted{t: t, dir: t.TempDir()}
	file.set(s.kubeconfig("", "token: first"))
	config, err := Load(file.path(), func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	follower := config.Transport.(*follower)
	now := time.Now()
	follower.clock, follower.checked = func() time.Time { return now }, now
	file.set(s.kubeconfig("", "token: second"))
	if got := follower.content().config.BearerToken; got != "first" {
		t.Errorf("within the interval, the token is %s", got)
	}
	now = now.Add(Interval)
	if got := follower.content().config.BearerToken; got != "second" {
		t.Errorf("after the interval, the token is %s", got)
	}
}

// A file that cannot be used at the start is an error with its path, and without its content.
func TestUnusable(t *testing.T) {
	s := newServer(t)
	for name, tc := range map[string]struct{ text, want string }{
		"no YAML":                    {"password: {secret", "it is no kubeconfig in YAML or JSON"},
		"another kind":               {"kind: Secret\napiVersion: v1\nstringData: {a: secret}", "it is no kubeconfig"},
		"empty":                      {"", "no configuration has been provided"},
		"no context":                 {strings.ReplaceAll(s.kubeconfig("", "token: secret"), "current-context: x", "current-context: z"), "context was not found"},
		"a certificate that is none": {s.kubeconfig("", "client-certificate-data: c2VjcmV0, client-key-data: c2VjcmV0"), "tls: failed to find any PEM data"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(path, func(error) {})
			if err == nil || !strings.Contains(err.Error(), "kubeconfig "+path+": ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has the content: %v", err)
			}
		})
	}
}
