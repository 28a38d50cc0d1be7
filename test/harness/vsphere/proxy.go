// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// proxy is an HTTP proxy that connects one host with an address on this machine.
type proxy struct {
	host, address string
	listener      net.Listener
	server        *http.Server

	mu          sync.Mutex
	cut         bool
	connections map[net.Conn]bool
}

func startProxy(host, address string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{host: host, address: address, listener: listener, connections: map[net.Conn]bool{}}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

func (p *proxy) url() string { return "http://" + p.listener.Addr().String() }

// ServeHTTP implements http.Handler for the method CONNECT.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if host, _, err := net.SplitHostPort(r.Host); r.Method != http.MethodConnect || err != nil || host != p.host {
		http.Error(w, "this proxy only connects with "+p.host, http.StatusForbidden)
		return
	}
	server, err := net.Dial("tcp", p.address)
	if err == nil && !p.add(server) {
		err = errors.Join(errors.New("disconnected"), server.Close())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer p.remove(server)
	w.WriteHeader(http.StatusOK)
	client, received, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close() //nolint:errcheck // Nothing is lost.
	go func() {
		_, _ = io.Copy(server, received) // the HTTP server can have read the first bytes of what follows its response
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

// add remembers a connection; false if there must be none.
func (p *proxy) add(connection net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cut {
		p.connections[connection] = true
	}
	return !p.cut
}

func (p *proxy) remove(connection net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.connections, connection)
	_ = connection.Close()
}

func (p *proxy) disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for connection := range p.connections {
		_ = connection.Close()
	}
}

func (p *proxy) connect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

func (p *proxy) stop() {
	p.disconnect()
	_ = p.server.Close()
}
