// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
)

// Mode is how a proxy treats connections and requests.
type Mode string

// The modes.
const (
	// Pass changes nothing.
	Pass Mode = "pass"
	// Cut refuses connections, and breaks those that exist.
	Cut Mode = "cut"
	// Delay delivers all bytes late, in both directions.
	Delay Mode = "delay"
	// Drop breaks the connections that exist. The API server gets each request, and the client gets no answer.
	Drop Mode = "drop"
	// Refuse answers new requests with 429. Watches continue.
	Refuse Mode = "refuse"
)

// RetryAfter is when a refused client can retry.
const RetryAfter = time.Second

// Proxy is a proxy in front of one API server. It is safe for concurrent use.
type Proxy struct {
	// front is where the client connects, and back is where the requests are forwarded.
	front, back net.Listener
	server      *http.Server
	certificate []byte
	delay       time.Duration

	mutex       sync.Mutex
	mode        Mode
	affected    int
	connections map[net.Conn]bool
	running     sync.WaitGroup
	closed      chan struct{}
}

// New starts a proxy in front of the API server of a kubeconfig, on a free port. Mode Delay delays by the given
// duration in each direction.
func New(kubeconfig string, delay time.Duration) (*Proxy, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	// Tokens and impersonation are in the client's requests.
	transport, err := rest.TransportFor(&rest.Config{Host: config.Host, TLSClientConfig: config.TLSClientConfig})
	if err != nil {
		return nil, err
	}
	certificate, key, err := certutil.GenerateSelfSignedCertKey(localhost, []net.IP{net.ParseIP(localhost)}, nil)
	if err != nil {
		return nil, fmt.Errorf("creating the certificate of the proxy: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	p := &Proxy{certificate: certificate, delay: delay, mode: Pass, connections: map[net.Conn]bool{}, closed: make(chan struct{})}
	p.server = &http.Server{
		Handler:           p.handler(to, transport),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
	}
	if p.back, err = net.Listen("tcp", localhost+":0"); err != nil {
		return nil, err
	}
	if p.front, err = net.Listen("tcp", localhost+":0"); err != nil {
		return nil, errors.Join(err, p.back.Close())
	}
	go p.server.ServeTLS(p.back, "", "") //nolint:errcheck // It ends with Close.
	go p.accept()
	return p, nil
}

// localhost is the only address that a proxy listens on.
const localhost = "127.0.0.1"

// Address returns the host and port that the client connects to.
func (p *Proxy) Address() string { return p.front.Addr().String() }

// Set changes the mode. Affected counts from 0 again.
func (p *Proxy) Set(mode Mode) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.mode, p.affected = mode, 0
	if mode == Cut || mode == Drop {
		for connection := range p.connections {
			breakOff(connection)
			p.affected++
		}
	}
}

// Affected returns how many connections and requests the mode has affected since it was set.
func (p *Proxy) Affected() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.affected
}

// Close ends the proxy and all its connections.
func (p *Proxy) Close() error {
	err := p.front.Close()
	close(p.closed)
	p.Set(Cut)
	err = errors.Join(err, p.server.Close())
	p.running.Wait()
	return err
}

// WriteKubeconfig writes a copy of a kubeconfig whose requests go through the proxy. The proxy has the client's
// certificate, so the copy does not need it.
func (p *Proxy) WriteKubeconfig(from, to string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.TLSServerName = "https://"+p.Address(), ""
		cluster.CertificateAuthority, cluster.CertificateAuthorityData = "", p.certificate
	}
	for _, user := range config.AuthInfos {
		user.ClientCertificate, user.ClientCertificateData = "", nil
		user.ClientKey, user.ClientKeyData = "", nil
	}
	return clientcmd.WriteToFile(*config, to)
}

// affectedBy reports whether the mode is the given one, and counts that.
func (p *Proxy) affectedBy(mode Mode) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.mode != mode {
		return false
	}
	p.affected++
	return true
}

// handler forwards requests.
func (p *Proxy) handler(to *url.URL, transport http.RoundTripper) http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     transport,
		FlushInterval: -1, // Events of watches are not held back.
		ErrorLog:      log.New(io.Discard, "", 0),
		ModifyResponse: func(*http.Response) error {
			// The API server has answered, so a write is committed.
			if p.affectedBy(Drop) {
				return errors.New("the answer is dropped")
			}
			return nil
		},
		// The client sees a broken stream, not an answer that an API server would not give.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.affectedBy(Refuse) {
			w.Header().Set("Retry-After", strconv.Itoa(int(RetryAfter.Seconds())))
			http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
			return
		}
		forward.ServeHTTP(w, r)
	})
}
