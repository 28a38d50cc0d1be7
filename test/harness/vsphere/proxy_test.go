// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// A client can send its first bytes before the proxy has taken over the connection.
func TestProxyPassesOnWhatComesEarly(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	p, err := startProxy("vcenter", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	client, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	const early = "hello"
	if _, err := fmt.Fprintf(client, "CONNECT vcenter:443 HTTP/1.1\r\nHost: vcenter:443\r\n\r\n%s", early); err != nil {
		t.Fatal(err)
	}
	if response, err := http.ReadResponse(bufio.NewReader(client), &http.Request{Method: http.MethodConnect}); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("response %+v, %v", response, err)
	}
	connection, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(early))
	if _, err := io.ReadFull(connection, got); err != nil || string(got) != early {
		t.Errorf("the server received %q, %v; want %q", got, err, early)
	}
}
