// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// portEnv makes the test's program listen on a port.
const portEnv = "STACK_TEST_PORT"

// A component is started again as soon as it was killed, on the same port.
func TestKilledProcessHasReleasedItsPort(t *testing.T) {
	if port := os.Getenv(portEnv); port != "" {
		listenWithThreads(t, port)
	}
	g := NewWithT(t)
	state := folder(t.TempDir())
	for range 5 {
		ports, err := FreePorts(1)
		g.Expect(err).NotTo(HaveOccurred())
		helper := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", string(state))
		helper.Env = append(os.Environ(), portEnv+"="+strconv.Itoa(ports[0]))
		g.Expect(helper.Start()).To(Succeed())
		ended := make(chan struct{})
		go func() {
			_ = helper.Wait()
			close(ended)
		}()
		g.Eventually(func() error {
			connection, err := net.Dial("tcp", address(ports[0]))
			if err == nil {
				_ = connection.Close()
			}
			return err
		}).WithTimeout(10*time.Second).WithPolling(time.Millisecond).Should(Succeed(), "it listens")
		g.Expect(process{pid: helper.Process.Pid, state: state}.kill(t.Context())).To(Succeed())
		listener, err := net.Listen("tcp", address(ports[0]))
		g.Expect(err).NotTo(HaveOccurred(), "the port is free")
		g.Expect(listener.Close()).To(Succeed())
		<-ended
	}
}

// listenWithThreads listens in a process that takes some time to end, because it has many threads and much memory.
func listenWithThreads(t *testing.T, port string) {
	memory := make([]byte, 256<<20)
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	for range 200 {
		go func() {
			runtime.LockOSThread()
			select {}
		}()
	}
	if _, err := net.Listen("tcp", net.JoinHostPort(localhost, port)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute) // The test kills it.
	runtime.KeepAlive(memory)
}
