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

// Deadlines of a stop: the time to end gracefully, and the time that the system then needs to end a killed process.
const (
	stopTimeout = 15 * time.Second
	killTimeout = 10 * time.Second
)

// startProcess starts a process in a session of its own, so that it does not receive the terminal's signals and can
// outlive this process. Its output goes to the log file, its id to the pid file.
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
		// Wait prevents a zombie. How the process ended is in its log; whether it has ended is reported by
		// process.alive.
		_ = cmd.Wait()
		close(ended)
	}()
	awaitArguments(cmd.Process.Pid, ended)
	return os.WriteFile(pidFile, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
}

// awaitArguments returns when the process has its arguments, which process.alive checks, or has ended. The new program
// runs before the kernel has set them, so at first they look like those of a zombie.
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

// process is a process of the stack in a folder. It can have ended, and its id can belong to another process by now.
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

// alive reports whether the process runs and belongs to the stack: all processes of a stack have the state folder in
// their arguments.
func (p process) alive() bool {
	arguments, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "cmdline"))
	if errors.Is(err, os.ErrNotExist) && !hasProc() {
		arguments, err = exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(p.pid)).Output()
	}
	// A zombie has no arguments.
	return err == nil && bytes.Contains(arguments, []byte(p.state))
}

// released reports whether the system has closed the files of a process that is no longer alive, and with them its
// listeners. A killed process loses its arguments before that, because its threads end one after another.
func (p process) released() bool {
	dir := filepath.Join("/proc", strconv.Itoa(p.pid))
	threads, err := os.ReadDir(filepath.Join(dir, "task"))
	if err != nil {
		return true
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return true
	}
	// The state follows the name of the program, which is in parentheses (proc_pid_stat(5)).
	state := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(threads) == 1 && bytes.HasPrefix(state, []byte("Z"))
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/cmdline")
	return err == nil
}

// signal sends a signal to a process that was alive just now.
func (p process) signal(signal syscall.Signal) error {
	if err := syscall.Kill(p.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %s to process %d: %w", signal, p.pid, err)
	}
	return nil
}

// stop ends the process gracefully, or kills it if it does not end in time.
func (p process) stop(ctx context.Context) error {
	if !p.alive() {
		return nil
	}
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	if p.awaitEnd(ctx, stopTimeout) == nil {
		return nil
	}
	return p.kill(ctx)
}

// kill kills the process.
func (p process) kill(ctx context.Context) error {
	if !p.alive() {
		return nil
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	return p.awaitEnd(ctx, killTimeout)
}

func (p process) awaitEnd(ctx context.Context, timeout time.Duration) error {
	return Await(ctx, timeout, fmt.Sprintf("process %d to end", p.pid), func(context.Context) (bool, string, error) {
		return !p.alive() && p.released(), "it is running", nil
	})
}
