// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// newState creates a state folder, and starts a process that has it in its arguments, as all processes of a stack do.
func newState(t *testing.T) (folder, process) {
	t.Helper()
	g := NewWithT(t)
	state := folder(t.TempDir())
	g.Expect(state.create()).To(Succeed())
	file := state.path("logs", "file")
	g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	pidFile := filepath.Join(state.pids(), "tail.pid")
	g.Expect(startProcess([]string{"tail", "-f", file}, nil, state.path("logs", "tail.log"), pidFile)).To(Succeed())
	p, ok := findProcess(state, pidFile)
	g.Expect(ok).To(BeTrue(), "the process runs")
	t.Cleanup(func() { _ = p.kill(t.Context()) })
	return state, p
}

func TestStop(t *testing.T) {
	_, p := newState(t)
	g := NewWithT(t)
	g.Expect(p.stop(t.Context())).To(Succeed())
	g.Expect(p.alive()).To(BeFalse())
	g.Expect(p.stop(t.Context())).To(Succeed(), "it has already ended")
}

// A process that has just been started must not be reported as ended, because the stack would then be stopped. Only a
// large program, such as that of this test, shows the error.
func TestStartedProcessIsFound(t *testing.T) {
	g := NewWithT(t)
	state := folder(t.TempDir())
	if os.Getenv(helperEnv) != "" {
		time.Sleep(time.Minute) // The test kills it.
	}
	for range 50 {
		helper := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", string(state))
		helper.Env = append(os.Environ(), helperEnv+"=1")
		g.Expect(helper.Start()).To(Succeed())
		awaitArguments(helper.Process.Pid, nil)
		g.Expect(process{pid: helper.Process.Pid, state: state}.alive()).To(BeTrue(), "the process runs")
		g.Expect(helper.Process.Kill()).To(Succeed())
		_ = helper.Wait()
	}
}

// helperEnv makes the test's program do nothing.
const helperEnv = "STACK_TEST_HELPER"

// The system reuses process ids, and another program must not be stopped because of its id.
func TestForeignProcessIsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	foreign := exec.Command("tail", "-f", os.DevNull)
	g.Expect(foreign.Start()).To(Succeed())
	defer func() {
		_ = foreign.Process.Kill()
		_ = foreign.Wait()
	}()
	state := folder(t.TempDir())
	pidFile := state.path("foreign.pid")
	g.Expect(os.WriteFile(pidFile, []byte(strconv.Itoa(foreign.Process.Pid)), 0o600)).To(Succeed())
	p, ok := findProcess(state, pidFile)
	g.Expect(ok).To(BeFalse())
	g.Expect(p.kill(t.Context())).To(Succeed())
	alive := func() error { return foreign.Process.Signal(syscall.Signal(0)) }
	g.Consistently(alive).WithTimeout(300*time.Millisecond).Should(Succeed(), "it runs")
}

func TestGuard(t *testing.T) {
	t.Run("kills what is left when the owner has ended", func(t *testing.T) {
		state, p := newState(t)
		g := NewWithT(t)
		guard, err := startGuard(state)
		g.Expect(err).NotTo(HaveOccurred())
		// The system does this when the owner ends.
		g.Expect(guard.owner.Close()).To(Succeed())
		g.Eventually(p.alive).WithTimeout(10 * time.Second).Should(BeFalse())
	})
	t.Run("leaves when it is dismissed", func(t *testing.T) {
		state, p := newState(t)
		g := NewWithT(t)
		guard, err := startGuard(state)
		g.Expect(err).NotTo(HaveOccurred())
		guard.leave()
		g.Consistently(p.alive).WithTimeout(500 * time.Millisecond).Should(BeTrue())
	})
}
