// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net"
	"time"
)

// accept connects each client to the server of the proxy, until the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.front.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.back.Addr().String())
		if err != nil {
			breakOff(client)
			continue
		}
		if !p.admit(client) {
			breakOff(client)
			_ = server.Close()
			continue
		}
		p.join(client, server)
	}
}

// admit adds a connection to those that exist, unless connections are refused.
func (p *Proxy) admit(client net.Conn) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.mode == Cut {
		p.affected++
		return false
	}
	p.connections[client] = true
	return true
}

// join copies bytes between two connections until both have ended.
func (p *Proxy) join(client, server net.Conn) {
	both := make(chan struct{}, 2)
	p.running.Go(func() { p.copy(server, client); both <- struct{}{} })
	p.running.Go(func() { p.copy(client, server); both <- struct{}{} })
	p.running.Go(func() {
		<-both
		<-both
		p.mutex.Lock()
		defer p.mutex.Unlock()
		delete(p.connections, client)
	})
}

// chunk is what arrived at once, and when it is delivered.
type chunk struct {
	data []byte
	due  time.Time
}

// mostChunks is how many chunks can be on their way. The sender of more waits.
const mostChunks = 4096

// copy delivers what arrives from a connection to another, in order, and then closes both.
func (p *Proxy) copy(to, from net.Conn) {
	chunks := make(chan chunk, mostChunks)
	p.running.Go(func() {
		defer close(chunks)
		for {
			buffer := make([]byte, 16<<10)
			count, err := from.Read(buffer)
			chunks <- chunk{buffer[:count], time.Now().Add(p.lateness())}
			if err != nil {
				return
			}
		}
	})
	failed := false
	for next := range chunks {
		select {
		case <-time.After(time.Until(next.due)):
		case <-p.closed:
		}
		if !failed {
			_, err := to.Write(next.data)
			if failed = err != nil; failed {
				_ = from.Close() // Otherwise it would be read until it ends.
			}
		}
	}
	_ = to.Close()
	_ = from.Close()
}

// lateness returns by how much bytes that arrive now are late.
func (p *Proxy) lateness() time.Duration {
	if p.affectedBy(Delay) {
		return p.delay
	}
	return 0
}

// breakOff closes a connection with a reset, as a host does that does not know it.
func breakOff(connection net.Conn) {
	if tcp, is := connection.(*net.TCPConn); is {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}
