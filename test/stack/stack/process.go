// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Deadlines of a stop: the time to end in order, and then the time the system needs to end a killed process.
const (
	stopTimeout = 15 * time.Second
	killTimeout = 10 * time.Second
)

// startProcess starts a process in a session of its own, so that it does not get the terminal's signals and may outlive
// this process. Its output goes to the log file, its id to the pid file.
func startProcess(command, env []string, logFile, pidFile string) error {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // The process has it open.
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		// So that the process does not stay as a zombie. How it ended is in its log; that it is gone is seen in process.alive.
		_ = cmd.Wait()
		close(ended)
	}()
	awaitArguments(cmd.Process.Pid, ended)
	return os.WriteFile(pidFile, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
}

// awaitArguments returns when the process shows its arguments, by which process.alive knows it, or has ended. The new
// program runs before the kernel has set them, so for a moment they look like those of a zombie.
func awaitArguments(pid int, ended <-chan struct{}) {
	for hasProc() {
		if arguments, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); err != nil || len(arguments) > 0 {
			return
		}
		select {
		case <-ended:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// process is a process of the stack in a folder: one that may be gone, and whose id may be another's by now.
type process struct {
	pid   int
	state folder
}

// findProcess returns the live process of a pid file.
func findProcess(state folder, pidFile string) (process, bool) {
	data, err := os.ReadFile(pidFile)
	if err != nil {
		return process{}, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		return process{}, false
	}
	p := process{pid: pid, state: state}
	return p, p.alive()
}

// alive reports whether the process lives and is the stack's: all of them have the state folder in their arguments.
func (p process) alive() bool {
	arguments, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "cmdline"))
	if errors.Is(err, os.ErrNotExist) && !hasProc() {
		arguments, err = exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(p.pid)).Output()
	}
	// A zombie has no arguments any more.
	return err == nil && bytes.Contains(arguments, []byte(p.state))
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/cmdline")
	return err == nil
}

// signal sends a signal; to a process that is gone, nothing.
func (p process) signal(signal syscall.Signal) error {
	if !p.alive() {
		return nil
	}
	if err := syscall.Kill(p.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %s to process %d: %w", signal, p.pid, err)
	}
	return nil
}

// stop ends the process in order, or kills it when it does not end in time.
func (p process) stop(ctx context.Context) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	if p.awaitEnd(ctx, stopTimeout) == nil {
		return nil
	}
	return p.kill(ctx)
}

// kill ends the process at once.
func (p process) kill(ctx context.Context) error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	return p.awaitEnd(ctx, killTimeout)
}

func (p process) awaitEnd(ctx context.Context, timeout time.Duration) error {
	return Await(ctx, timeout, fmt.Sprintf("process %d to end", p.pid), func(context.Context) (bool, string, error) {
		return !p.alive(), "it runs", nil
	})
}
