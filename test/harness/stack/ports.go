// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// localhost is the only address that a stack listens on.
const localhost = "127.0.0.1"

// The ports are below those of outgoing connections, so that the port of a component is free when it is restarted.
const (
	firstPort = 20000
	lastPort  = 31999
)

// claims are the sockets that keep the ports of FreePorts for this process.
var claims sync.Map

// FreePorts returns ports that nothing listens on, and each port only once, also to other processes with stacks that run at
// the same time: a component listens on its port long after that, and again after each restart. As long as this process
// runs, it keeps a port for itself with a Unix socket that has no file.
func FreePorts(count int) ([]int, error) {
	ports := make([]int, 0, count)
	for range 100 * count {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		claim, err := net.Listen("unix", "@karpenter-capi-stack-port-"+strconv.Itoa(port))
		if err != nil {
			continue // it is that of a stack
		}
		claims.Store(port, claim)
		listener, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		// The listeners stay open until all ports are found, so that none is found twice.
		defer listener.Close() //nolint:errcheck // It only held the port.
		if ports = append(ports, port); len(ports) == count {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("found only %d free ports of %d on %s", len(ports), count, localhost)
}

func address(port int) string {
	return net.JoinHostPort(localhost, strconv.Itoa(port))
}
